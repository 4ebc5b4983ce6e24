// Thrust on device vectors.
#include <thrust/adjacent_difference.h>
#include <thrust/count.h>
#include <thrust/device_vector.h>
#include <thrust/extrema.h>
#include <thrust/gather.h>
#include <thrust/inner_product.h>
#include <thrust/iterator/zip_iterator.h>
#include <thrust/merge.h>
#include <thrust/partition.h>
#include <thrust/random.h>
#include <thrust/remove.h>
#include <thrust/scan.h>
#include <thrust/set_operations.h>
#include <thrust/sort.h>
#include <thrust/tabulate.h>
#include <thrust/transform_reduce.h>
#include <thrust/unique.h>

struct Hash {
    __host__ __device__ float operator()(unsigned n) const
    {
        thrust::default_random_engine engine(n);
        return thrust::uniform_real_distribution<float>(0, 1)(engine);
    }
};

template <typename T>
static T algorithms(thrust::device_vector<T>& a, thrust::device_vector<T>& b, thrust::device_vector<int>& k)
{
    thrust::sort(a.begin(), a.end(), thrust::greater<T>());
    thrust::stable_sort_by_key(k.begin(), k.end(), b.begin());
    thrust::inclusive_scan_by_key(k.begin(), k.end(), a.begin(), b.begin());
    thrust::reduce_by_key(k.begin(), k.end(), a.begin(), k.begin(), b.begin());
    thrust::unique_by_key(k.begin(), k.end(), a.begin());
    thrust::set_union(a.begin(), a.end(), b.begin(), b.end(), a.begin());
    thrust::set_difference_by_key(k.begin(), k.end(), k.begin(), k.end(), a.begin(), b.begin(), k.begin(), a.begin());
    thrust::merge(a.begin(), a.end(), b.begin(), b.end(), a.begin());
    thrust::stable_partition(a.begin(), a.end(), [] __host__ __device__(T x) { return x > T(1); });
    thrust::remove_if(a.begin(), a.end(), [] __host__ __device__(T x) { return x == T(0); });
    thrust::adjacent_difference(a.begin(), a.end(), b.begin());
    thrust::gather(k.begin(), k.end(), a.begin(), b.begin());
    auto zipped = thrust::make_zip_iterator(a.begin(), b.begin());
    thrust::sort_by_key(k.begin(), k.end(), zipped);
    auto ends = thrust::minmax_element(a.begin(), a.end());
    return thrust::transform_reduce(a.begin(), a.end(), thrust::square<T>(), T(0), thrust::plus<T>())
        + thrust::inner_product(a.begin(), a.end(), b.begin(), T(*ends.first)) + thrust::count(a.begin(), a.end(), T(2));
}

double every(int n)
{
    thrust::device_vector<float> f(n), g(n);
    thrust::device_vector<long long> l(n), m(n);
    thrust::device_vector<int> k(n);
    thrust::tabulate(f.begin(), f.end(), Hash());
    return algorithms(f, g, k) + algorithms(l, m, k);
}

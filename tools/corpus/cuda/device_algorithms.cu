// CUB's algorithms for whole devices: megabytes of PTX.
#include <cub/cub.cuh>

struct Custom {
    int key;
    double value;
    __host__ __device__ bool operator<(const Custom& other) const { return key < other.key; }
};

template <typename T>
static void algorithms(T* in, T* out, int* counts, int* offsets, int n)
{
    size_t bytes = 0;
    cub::DeviceRadixSort::SortKeys(nullptr, bytes, in, out, n);
    cub::DeviceRadixSort::SortPairsDescending(nullptr, bytes, in, out, counts, offsets, n);
    cub::DeviceMergeSort::SortKeys(nullptr, bytes, in, n, cuda::std::less<>{});
    cub::DeviceSegmentedSort::SortKeys(nullptr, bytes, in, out, n, 10, offsets, offsets + 1);
    cub::DeviceScan::InclusiveSum(nullptr, bytes, in, out, n);
    cub::DeviceScan::ExclusiveScan(nullptr, bytes, in, out, cuda::maximum<>{}, T{}, n);
    cub::DeviceReduce::Sum(nullptr, bytes, in, out, n);
    cub::DeviceReduce::ArgMin(nullptr, bytes, in, out, counts, n);
    cub::DeviceReduce::ReduceByKey(nullptr, bytes, in, out, in, out, counts, cuda::std::plus<>{}, n);
    cub::DeviceSegmentedReduce::Sum(nullptr, bytes, in, out, 10, offsets, offsets + 1);
    cub::DeviceRunLengthEncode::Encode(nullptr, bytes, in, out, counts, offsets, n);
    cub::DeviceSelect::Flagged(nullptr, bytes, in, counts, out, offsets, n);
    cub::DeviceSelect::Unique(nullptr, bytes, in, out, counts, n);
    cub::DevicePartition::If(nullptr, bytes, in, out, counts, n, [] __device__(const T& x) { return x > T{3}; });
    cub::DeviceAdjacentDifference::SubtractLeftCopy(nullptr, bytes, in, out, n, cuda::std::minus<>{});
    cub::DeviceFor::Bulk(n, [=] __device__(int i) { out[i] = in[i] * in[i]; });
    cub::DeviceTransform::Transform(cuda::std::make_tuple(in, in), out, n, cuda::std::multiplies<>{});
}

void every(void* in, void* out, int* counts, int* offsets, int n)
{
    algorithms(static_cast<int*>(in), static_cast<int*>(out), counts, offsets, n);
    algorithms(static_cast<unsigned long long*>(in), static_cast<unsigned long long*>(out), counts, offsets, n);
    algorithms(static_cast<float*>(in), static_cast<float*>(out), counts, offsets, n);
    algorithms(static_cast<double*>(in), static_cast<double*>(out), counts, offsets, n);
    size_t bytes = 0;
    cub::DeviceMergeSort::SortKeys(nullptr, bytes, static_cast<Custom*>(in), n, cuda::std::less<>{});
    cub::DeviceHistogram::HistogramEven(nullptr, bytes, static_cast<float*>(in), counts, 257, 0.0f, 1.0f, n);
    cub::DeviceHistogram::MultiHistogramEven<4, 3>(nullptr, bytes, static_cast<unsigned char*>(in),
        cuda::std::array<int*, 3>{counts, counts, counts}.data(), cuda::std::array<int, 3>{257, 257, 257}.data(),
        cuda::std::array<int, 3>{0, 0, 0}.data(), cuda::std::array<int, 3>{256, 256, 256}.data(), n);
    cub::DeviceMemcpy::Batched(nullptr, bytes, static_cast<void**>(in), static_cast<void**>(out), counts, n);
}

// Sorts, scans and reductions of several types: nvcc makes more than 2 MB of PTX from them.
#include <cub/cub.cuh>

template <typename Key>
static void sort_scan_reduce(Key* in, Key* out, int n)
{
    size_t bytes = 0;
    cub::DeviceRadixSort::SortKeys(nullptr, bytes, in, out, n);
    cub::DeviceRadixSort::SortPairs(nullptr, bytes, in, out, in, out, n);
    cub::DeviceScan::InclusiveSum(nullptr, bytes, in, out, n);
    cub::DeviceReduce::Sum(nullptr, bytes, in, out, n);
}

void all(void* in, void* out, int n)
{
    sort_scan_reduce(static_cast<int*>(in), static_cast<int*>(out), n);
    sort_scan_reduce(static_cast<unsigned long long*>(in), static_cast<unsigned long long*>(out), n);
    sort_scan_reduce(static_cast<float*>(in), static_cast<float*>(out), n);
    sort_scan_reduce(static_cast<double*>(in), static_cast<double*>(out), n);
}

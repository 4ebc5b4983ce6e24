// Texture and surface objects of every kind of resource, against the same computed on the host.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#define CHECK(call)                                                                       \
  do {                                                                                    \
    cudaError_t error_ = (call);                                                          \
    if (error_ != cudaSuccess) {                                                          \
      printf("line %d: %s\n", __LINE__, cudaGetErrorName(error_));                        \
      exit(1);                                                                            \
    }                                                                                     \
  } while (0)

static const int W = 24, H = 16, D = 3;

static std::vector<float> floats(size_t count) {
  std::vector<float> made(count);
  for (float &each : made) each = rand() / (float)RAND_MAX - 0.5f;
  return made;
}

static cudaTextureDesc sampling(cudaTextureAddressMode mode, cudaTextureFilterMode filter, bool normalized) {
  cudaTextureDesc made = {};
  for (auto &each : made.addressMode) each = mode;
  made.filterMode = filter;
  made.readMode = cudaReadModeElementType;
  made.normalizedCoords = normalized;
  return made;
}

template <class T> static T *upload(const std::vector<T> &data) {
  T *made;
  CHECK(cudaMalloc(&made, data.size() * sizeof(T)));
  CHECK(cudaMemcpy(made, data.data(), data.size() * sizeof(T), cudaMemcpyHostToDevice));
  return made;
}

static bool same(const float *device, const std::vector<float> &expected, float tolerance) {
  std::vector<float> found(expected.size());
  CHECK(cudaMemcpy(found.data(), device, found.size() * sizeof(float), cudaMemcpyDeviceToHost));
  for (size_t i = 0; i < found.size(); i++)
    if (!(std::fabs(found[i] - expected[i]) <= tolerance)) {
      printf("element %zu is %g, not %g\n", i, found[i], expected[i]);
      return false;
    }
  return true;
}

__global__ void fetch_linear(cudaTextureObject_t texture, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = tex1Dfetch<float>(texture, i - 4);  // 0 before the first
}

static bool linear() {
  std::vector<float> data = floats(100), expected(104);
  for (int i = 0; i < 104; i++) expected[i] = i < 4 ? 0 : data[i - 4];
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeLinear;
  resource.res.linear.devPtr = upload(data);
  resource.res.linear.desc = cudaCreateChannelDesc<float>();
  resource.res.linear.sizeInBytes = 400;
  cudaTextureDesc how = sampling(cudaAddressModeClamp, cudaFilterModePoint, false);
  cudaTextureObject_t texture;
  CHECK(cudaCreateTextureObject(&texture, &resource, &how, nullptr));
  float *out = upload(std::vector<float>(104));
  fetch_linear<<<2, 64>>>(texture, out, 104);
  bool right = same(out, expected, 0);
  CHECK(cudaDestroyTextureObject(texture));
  return right;
}

__global__ void transpose(cudaTextureObject_t texture, float *out) {
  int x = threadIdx.x, y = blockIdx.x;
  uchar4 texel = tex2D<uchar4>(texture, x + 0.5f, y + 0.5f);
  out[x * H + y] = texel.x + texel.y * 256.0f + texel.w;
}

static bool pitched() {
  std::vector<uchar4> data(W * H);
  for (int i = 0; i < W * H; i++) data[i] = make_uchar4(rand(), rand(), rand(), rand());
  uchar4 *rows;
  size_t pitch;
  CHECK(cudaMallocPitch(&rows, &pitch, W * sizeof(uchar4), H));
  CHECK(cudaMemcpy2D(rows, pitch, data.data(), W * sizeof(uchar4), W * sizeof(uchar4), H, cudaMemcpyHostToDevice));
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypePitch2D;
  resource.res.pitch2D.devPtr = rows;
  resource.res.pitch2D.desc = cudaCreateChannelDesc<uchar4>();
  resource.res.pitch2D.width = W;
  resource.res.pitch2D.height = H;
  resource.res.pitch2D.pitchInBytes = pitch;
  cudaTextureDesc how = sampling(cudaAddressModeClamp, cudaFilterModePoint, false);
  cudaTextureObject_t texture;
  CHECK(cudaCreateTextureObject(&texture, &resource, &how, nullptr));
  float *out = upload(std::vector<float>(W * H));
  transpose<<<H, W>>>(texture, out);
  std::vector<float> expected(W * H);
  for (int y = 0; y < H; y++)
    for (int x = 0; x < W; x++) expected[x * H + y] = data[y * W + x].x + data[y * W + x].y * 256.0f + data[y * W + x].w;
  return same(out, expected, 0);
}

__global__ void rotate(cudaTextureObject_t texture, float *out, float angle) {
  float u = threadIdx.x / (float)W - 0.5f, v = blockIdx.x / (float)H - 0.5f;
  out[blockIdx.x * W + threadIdx.x] =
      tex2D<float>(texture, u * cosf(angle) - v * sinf(angle) + 0.5f, v * cosf(angle) + u * sinf(angle) + 0.5f);
}

static float texel(const std::vector<float> &data, int x, int y) {
  return data[((y % H + H) % H) * W + (x % W + W) % W];
}

static bool filtered() {
  std::vector<float> data = floats(W * H), expected(W * H);
  cudaChannelFormatDesc format = cudaCreateChannelDesc(32, 0, 0, 0, cudaChannelFormatKindFloat);
  cudaArray_t array;
  CHECK(cudaMallocArray(&array, &format, W, H));
  CHECK(cudaMemcpy2DToArray(array, 0, 0, data.data(), W * 4, W * 4, H, cudaMemcpyHostToDevice));
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = array;
  cudaTextureDesc how = sampling(cudaAddressModeWrap, cudaFilterModeLinear, true);
  cudaTextureObject_t texture;
  CHECK(cudaCreateTextureObject(&texture, &resource, &how, nullptr));
  float *out = upload(std::vector<float>(W * H)), angle = 0.5f;
  rotate<<<H, W>>>(texture, out, angle);
  for (int i = 0; i < W * H; i++) {
    float u = i % W / (float)W - 0.5f, v = i / W / (float)H - 0.5f;
    float x = (u * cosf(angle) - v * sinf(angle) + 0.5f) * W - 0.5f;
    float y = (v * cosf(angle) + u * sinf(angle) + 0.5f) * H - 0.5f;
    int left = floorf(x), top = floorf(y);
    float a = x - left, b = y - top;
    expected[i] = (1 - a) * (1 - b) * texel(data, left, top) + a * (1 - b) * texel(data, left + 1, top) +
                  (1 - a) * b * texel(data, left, top + 1) + a * b * texel(data, left + 1, top + 1);
  }
  bool right = same(out, expected, 2 / 256.0f);  // weights have 8 bits of fraction
  CHECK(cudaDestroyTextureObject(texture));
  CHECK(cudaFreeArray(array));
  return right;
}

__global__ void slices(cudaTextureObject_t volume, cudaTextureObject_t layers, float *out) {
  int x = threadIdx.x, y = blockIdx.x, z = blockIdx.y;
  out[(z * H + y) * W + x] = tex3D<float>(volume, x + 0.5f, y + 0.5f, z + 0.5f) - tex2DLayered<float>(layers, x, y, z);
}

static cudaArray_t filled(const std::vector<float> &data, unsigned flags) {
  cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
  cudaArray_t array;
  CHECK(cudaMalloc3DArray(&array, &format, make_cudaExtent(W, H, D), flags));
  cudaMemcpy3DParms copy = {};
  copy.srcPtr = make_cudaPitchedPtr((void *)data.data(), W * 4, W, H);
  copy.dstArray = array;
  copy.extent = make_cudaExtent(W, H, D);
  copy.kind = cudaMemcpyHostToDevice;
  CHECK(cudaMemcpy3D(&copy));
  cudaChannelFormatDesc got;
  cudaExtent extent;
  unsigned had;
  CHECK(cudaArrayGetInfo(&got, &extent, &had, array));
  if (got.x != 32 || got.y || got.f != cudaChannelFormatKindFloat || extent.depth != D || had != flags) puts("wrong info");
  return array;
}

static bool volumes() {
  std::vector<float> first = floats(W * H * D), second = floats(W * H * D), expected(W * H * D);
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeArray;
  cudaTextureDesc how = sampling(cudaAddressModeClamp, cudaFilterModePoint, false);
  cudaTextureObject_t volume, layers;
  resource.res.array.array = filled(first, 0);
  CHECK(cudaCreateTextureObject(&volume, &resource, &how, nullptr));
  resource.res.array.array = filled(second, cudaArrayLayered);
  CHECK(cudaCreateTextureObject(&layers, &resource, &how, nullptr));
  float *out = upload(std::vector<float>(W * H * D));
  slices<<<dim3(H, D), W>>>(volume, layers, out);
  for (int i = 0; i < W * H * D; i++) expected[i] = first[i] - second[i];
  return same(out, expected, 0);
}

__global__ void invert(cudaSurfaceObject_t surface, int beyond) {
  int x = threadIdx.x, y = blockIdx.x;
  float value;
  surf2Dread(&value, surface, (x + beyond) * (int)sizeof(float), y);  // the surface
  surf2Dwrite(1 - value, surface, x * (int)sizeof(float), y);
}

static bool surfaces(int beyond) {
  std::vector<float> data = floats(W * H);
  cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
  cudaArray_t array;
  CHECK(cudaMallocArray(&array, &format, W, H, cudaArraySurfaceLoadStore));
  CHECK(cudaMemcpy2DToArray(array, 0, 0, data.data(), W * 4, W * 4, H, cudaMemcpyHostToDevice));
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = array;
  cudaSurfaceObject_t surface;
  CHECK(cudaCreateSurfaceObject(&surface, &resource));
  invert<<<H, W>>>(surface, beyond);
  cudaError_t error = cudaDeviceSynchronize();
  if (error != cudaSuccess) {
    puts(cudaGetErrorName(error));
    return false;
  }
  std::vector<float> found(W * H);
  CHECK(cudaMemcpy2DFromArray(found.data(), W * 4, array, 0, 0, W * 4, H, cudaMemcpyDeviceToHost));
  CHECK(cudaDestroySurfaceObject(surface));
  CHECK(cudaFreeArray(array));
  for (int i = 0; i < W * H; i++)
    if (found[i] != 1 - data[i]) return false;
  return true;
}

// A texture is destroyed, and its handle used once more.
static bool destroyed() {
  std::vector<float> data = floats(100);
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeLinear;
  resource.res.linear.devPtr = upload(data);
  resource.res.linear.desc = cudaCreateChannelDesc<float>();
  resource.res.linear.sizeInBytes = 400;
  cudaTextureDesc how = sampling(cudaAddressModeClamp, cudaFilterModePoint, false);
  cudaTextureObject_t texture;
  CHECK(cudaCreateTextureObject(&texture, &resource, &how, nullptr));
  CHECK(cudaDestroyTextureObject(texture));
  float *out = upload(std::vector<float>(104));
  fetch_linear<<<2, 64>>>(texture, out, 104);
  puts(cudaGetErrorName(cudaDeviceSynchronize()));
  return false;
}

int main(int count, char **words) {
  const char *what = count > 1 ? words[1] : "linear";
  auto is = [&](const char *name) { return strcmp(what, name) == 0; };
  srand(7);
  bool right = is("linear")      ? linear()
               : is("pitched")   ? pitched()
               : is("filtered")  ? filtered()
               : is("volumes")   ? volumes()
               : is("surfaces")  ? surfaces(0)
               : is("beyond")    ? surfaces(1)
               : is("destroyed") ? destroyed()
                                 : false;
  puts(right ? "PASS" : "FAIL");
  return right ? 0 : 1;
}

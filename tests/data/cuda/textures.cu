// Texture and surface objects in every geometry.
#include <cuda_runtime.h>

template <typename T>
__device__ T textures(cudaTextureObject_t t, float x, float y, float z, int layer)
{
    bool resident;
    float4 dx = make_float4(x, y, z, 0), dy = make_float4(z, y, x, 0);
    float2 gx = make_float2(x, y), gy = make_float2(y, x);
    T s = tex1Dfetch<T>(t, layer);
    auto add = [&](T v) { s.x += v.x; s.y += v.y; s.z += v.z; s.w += v.w; };
    add(tex1D<T>(t, x));
    add(tex1DLod<T>(t, x, y));
    add(tex1DGrad<T>(t, x, y, z));
    add(tex1DLayered<T>(t, x, layer));
    add(tex1DLayeredLod<T>(t, x, layer, y));
    add(tex1DLayeredGrad<T>(t, x, layer, y, z));
    add(tex2D<T>(t, x, y));
    add(tex2D<T>(t, x, y, &resident));
    if (!resident) return s;
    add(tex2DLod<T>(t, x, y, z));
    add(tex2DLod<T>(t, x, y, z, &resident));
    add(tex2DGrad<T>(t, x, y, gx, gy));
    add(tex2DLayered<T>(t, x, y, layer));
    add(tex2DLayeredLod<T>(t, x, y, layer, z));
    add(tex2DLayeredGrad<T>(t, x, y, layer, gx, gy));
    add(tex2Dgather<T>(t, x, y, 0));
    add(tex2Dgather<T>(t, x, y, 3));
    add(tex3D<T>(t, x, y, z));
    add(tex3D<T>(t, x, y, z, &resident));
    add(tex3DLod<T>(t, x, y, z, x));
    add(tex3DGrad<T>(t, x, y, z, dx, dy));
    add(texCubemap<T>(t, x, y, z));
    add(texCubemapLod<T>(t, x, y, z, x));
    add(texCubemapGrad<T>(t, x, y, z, dx, dy));
    add(texCubemapLayered<T>(t, x, y, z, layer));
    add(texCubemapLayeredLod<T>(t, x, y, z, layer, x));
    add(texCubemapLayeredGrad<T>(t, x, y, z, layer, dx, dy));
    return s;
}

template <typename T>
__device__ void surfaces(cudaSurfaceObject_t s, int x, int y, int z)
{
    T v;
    surf1Dread(&v, s, x);
    surf1Dwrite(v, s, x, cudaBoundaryModeClamp);
    surf2Dread(&v, s, x, y, cudaBoundaryModeZero);
    surf2Dwrite(v, s, x, y);
    surf3Dread(&v, s, x, y, z);
    surf3Dwrite(v, s, x, y, z, cudaBoundaryModeZero);
    surf1DLayeredread(&v, s, x, z);
    surf1DLayeredwrite(v, s, x, z);
    surf2DLayeredread(&v, s, x, y, z);
    surf2DLayeredwrite(v, s, x, y, z);
    surfCubemapread(&v, s, x, y, z);
    surfCubemapwrite(v, s, x, y, z);
    surfCubemapLayeredread(&v, s, x, y, z);
    surfCubemapLayeredwrite(v, s, x, y, z, cudaBoundaryModeClamp);
}

__global__ void all(cudaTextureObject_t t, cudaSurfaceObject_t s, float4* f, int4* i, uint4* u, short4* h)
{
    f[threadIdx.x] = textures<float4>(t, f[0].x, f[0].y, f[0].z, i[0].x);
    i[threadIdx.x] = textures<int4>(t, f[0].x, f[0].y, f[0].z, i[0].x);
    u[threadIdx.x] = textures<uint4>(t, f[0].x, f[0].y, f[0].z, i[0].x);
    h[threadIdx.x] = textures<short4>(t, f[0].x, f[0].y, f[0].z, i[0].x);
    surfaces<unsigned char>(s, i[1].x, i[1].y, i[1].z);
    surfaces<short2>(s, i[1].x, i[1].y, i[1].z);
    surfaces<float>(s, i[1].x, i[1].y, i[1].z);
    surfaces<float4>(s, i[1].x, i[1].y, i[1].z);
    surfaces<longlong2>(s, i[1].x, i[1].y, i[1].z);
}

/* cuLinkCreate: two modules of PTX become one. The second word is "twice" for a symbol that both define. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int cuInit(unsigned);
int cuLinkCreate_v2(unsigned, int *, void **, void **);
int cuLinkAddData_v2(void *, int, void *, size_t, const char *, unsigned, int *, void **);
int cuLinkComplete(void *, void **, size_t *);
int cuLinkDestroy(void *);
int cuModuleLoadData(void **, const void *);
int cuModuleGetFunction(void **, void *, const char *);
int cuLaunchKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **);
int cuMemAllocManaged(unsigned long long *, size_t, unsigned);
int cuCtxSynchronize(void);

static const char caller[] =
    ".version 8.0\n.target sm_90\n.address_size 64\n"
    ".extern .func (.param .b32 r) plus(.param .b32 x);\n"
    ".visible .entry run(.param .u64 data)\n{\n"
    ".reg .b32 %x; .reg .b64 %data;\nld.param.u64 %data, [data]; ld.u32 %x, [%data];\n"
    "{ .param .b32 a, b; st.param.b32 [a], %x; call (b), plus, (a); ld.param.b32 %x, [b]; }\n"
    "st.u32 [%data], %x; ret;\n}\n";
static const char callee[] =
    ".version 8.0\n.target sm_90\n.address_size 64\n"
    ".visible .func (.param .b32 r) plus(.param .b32 x)\n{\n"
    ".reg .b32 %x; ld.param.b32 %x, [x]; add.u32 %x, %x, 5; st.param.b32 [r], %x; ret;\n}\n";

int main(int count, char **words) {
    void *link, *image, *module, *function;
    size_t bytes;
    if (cuInit(0) || cuLinkCreate_v2(0, NULL, NULL, &link))
        return 2;
    for (int at = 0; at < 1 + count; at++) {
        const char *text = at ? callee : caller;
        if (cuLinkAddData_v2(link, 1, (void *)text, strlen(text) + 1, "ptx", 0, NULL, NULL))
            return 3;
    }
    if (cuLinkComplete(link, &image, &bytes) || !bytes)
        return 4;
    int loaded = cuModuleLoadData(&module, image);
    cuLinkDestroy(link);
    if (loaded)
        return printf("not loaded: %d\n", loaded), 5;
    unsigned long long data;
    void *arguments[] = {&data};
    if (cuMemAllocManaged(&data, 4, 1) || cuModuleGetFunction(&function, module, "run"))
        return 6;
    *(int *)data = 37;
    if (cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, arguments, NULL) || cuCtxSynchronize() || *(int *)data != 42)
        return 7;
    puts("PASS");
    return 0;
}

// The kernel itself: which product, item and tile a block computes.

#ifdef JG_GROUPED

// One of the products of a grouped launch. Must match struct group_entry in src/grouped.c.
struct jg_group_entry {
    const void *a, *b;
    void *c;
    const void *bias;
    u32 m, n, k;
    u32 first;  // its first block
    u32 lda, ldb, ldc, reserved;
};

struct jg_group {
    jg_args common;
    u32 count, reserved;
    jg_group_entry entries[JG_GROUPED];
};

// Where the compiler knows how to, the parameters are read where they lie, not copied to each thread.
#if __CUDACC_VER_MAJOR__ * 100 + __CUDACC_VER_MINOR__ >= 1107
#define IN_PLACE __grid_constant__
#else
#define IN_PLACE
#endif

extern "C" __global__ void __launch_bounds__(THREADS, JG_MIN_BLOCKS) JG_KERNEL(const IN_PLACE jg_group group)
{
    extern __shared__ __align__(128) u8 buffer[];
    u32 low = 0, high = group.count;
    while (high - low > 1) {
        const u32 middle = (low + high) / 2;
        if (blockIdx.x >= group.entries[middle].first) low = middle;
        else high = middle;
    }
    const jg_group_entry &entry = group.entries[low];
    jg_args args = group.common;
    args.a = entry.a;
    args.b = entry.b;
    args.c = entry.c;
    args.bias_m = args.bias_n = entry.bias;
    args.m = entry.m;
    args.n = entry.n;
    args.k = entry.k;
    args.lda = entry.lda;
    args.ldb = entry.ldb;
    args.ldc = entry.ldc;
    if (args.k == 0) args.alpha = 0.0f;  // an empty sum is 0 even if alpha is infinite
    multiply_item(args, blockIdx.x - entry.first, 0, buffer);
}

#else

extern "C" __global__ void __launch_bounds__(THREADS, JG_MIN_BLOCKS) JG_KERNEL(const jg_args args)
{
    extern __shared__ __align__(128) u8 buffer[];
#ifdef JG_SINGLE
    multiply_item(args, blockIdx.x, 0, buffer);
#else
    for (u32 item = blockIdx.y; item < args.batch; item += gridDim.y) {
        multiply_item(args, blockIdx.x, item, buffer);
        __syncthreads();  // the next item reuses the buffers
    }
#endif
}

#endif

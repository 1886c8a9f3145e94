/* How many times as fast as the generic kernel a problem's own is estimated to be: what decides whether it is made at all.
 *
 * In: the two plans of one problem. Out: a ratio. The cost by which tiles are chosen knows no difference between the forms and
 * stays as it is; what constants save is added here, as a share of the kernel's time.
 *
 * The figures are of kernels before slices, and lower than what is measured today: on an H200, with 132 and with 16 multiprocessors,
 * the generic kernels of 111 products in f16, f32 and s8 took 0.93 to 3.9 times as long as own ones, half of them more than 1.3 times,
 * and seven no longer (2026-11-30). It only decides whether a kernel is made: all are but those that leave all to the launch. A
 * measured gain goes before it (jg_record_gain). */
#include "plan.h"

/* Addresses and bounds that a generic kernel works out at run time. Counted: 1.20 and 1.25 times the instructions, with mma tiles
 * of 64x64x64 and 32x32x64. */
#define ADDRESS_SHARE 0.18
/* A part of that work is hidden behind other blocks' arithmetic, the larger the more waves of them there are and the more multiply-adds
 * a step of each has: by half with one wave of such tiles, those of the largest generic kernels. */
#define MMA_HALF_HIDDEN (128.0 * 128 * 32)
#define SIMT_HALF_HIDDEN (128.0 * 128 * 8)
/* But never all of it: with 100 waves of f32, whose multiply-adds wait in the same queue, 1.17 was measured, and with tensor cores, which
 * address work and the epilogue's cases keep waiting, 1.3 and more. */
#define LEAST_EXPOSED 0.5
/* A generic kernel that reads element by element also works out which way its operands lie. Counted: 1.6 times the
 * instructions. */
#define GATHER_SHARE 0.4
/* What it costs more for each operand that the own kernel copies or realigns, several elements at a time. Counted: 2.3 to 2.9 times
 * in all. */
#define GATHER_COPY_SHARE 0.5
/* A generic kernel that realigns works out addresses of words, and it realigns an operand that its own kernel may copy. Not yet
 * measured. */
#define REALIGN_SHARE 0.2
#define REALIGN_COPY_SHARE 0.1
/* How much of the model's difference between two tiles to believe. */
#define TILE_TRUST 0.05

/* Which part of the address work constants save: of n, k, the leading dimensions of A and B, and the single item, each that is
 * left to the launch takes a fifth away. (m is looked at once a block.) Counted for 64x64x64: with n, k, all three sizes, and the
 * batch as well left to the launch, 0.71, 0.66, 0.23 and 0 of it are saved. */
static double constant_part(const kernel_spec *own)
{
    return 1 - (!own->n + !own->k + !own->lda + !own->ldb + !own->single) / 5.0;
}

/* Which part of the address work is not hidden. */
static double exposed_part(const plan *generic)
{
    const tile *t = &generic->spec.tile;
    const int simt = generic->spec.family == FAMILY_SIMT;
    const double hides = generic->waves * t->m * t->n * t->k / (simt ? SIMT_HALF_HIDDEN : MMA_HALF_HIDDEN);
    const double exposed = 1 / (1 + hides * hides);
    return exposed < LEAST_EXPOSED ? LEAST_EXPOSED : exposed;
}

static int gathers(uint8_t vec)
{
    return vec == SPEC_GATHER || vec == SPEC_GATHER_WIDE;
}

static double load_share(const kernel_spec *generic, const kernel_spec *own)
{
    if (generic->family != FAMILY_MMA) return 0;
    if (generic->vec_a == SPEC_REALIGN)
        return REALIGN_SHARE + REALIGN_COPY_SHARE * ((own->vec_a != SPEC_REALIGN) + (own->vec_b != SPEC_REALIGN));
    if (generic->vec_a != SPEC_GATHER) return 0;
    return GATHER_SHARE + GATHER_COPY_SHARE * (!gathers(own->vec_a) + !gathers(own->vec_b));
}

double plan_gain(const plan *generic, const plan *own)
{
    /* Without a k step there is nothing to do but to store. */
    if (own->spec.form != JG_FORM_SPECIALISED || own->steps == 0) return 1;
    const double addresses = ADDRESS_SHARE * exposed_part(generic) * constant_part(&own->spec);
    const double saved = addresses + load_share(&generic->spec, &own->spec);
    const double tiles = own->clocks > 0 ? generic->clocks / own->clocks : 1;
    return (1 + saved) * (1 + TILE_TRUST * (tiles - 1));
}

/* ldmatrix and stmatrix: 8x8 matrices of 16-bit elements between shared memory and the registers of a warp.
 *
 * The address of row i of matrix j comes from lane 8j + i. A lane's register for a matrix holds elements 2(lane mod 4)
 * and the next of row lane / 4; with .trans, of that column. */
#include "variant.h"

#include "access.h"
#include "opcodes.h"

extern ptx_bind BIND(ldmatrix), BIND(stmatrix);

enum { ROWS = 8, ROW_BYTES = 16 };

static unsigned matrix_count(const ptx_instruction *i)
{
    static const uint8_t counts[] = {[COUNT_X1] = 1, [COUNT_X2] = 2, [COUNT_X4] = 4};
    return counts[i->modifier[MOD_COUNT]];
}

/* Resolves the rows. mask: the lanes that take part; those that give addresses must be among them. */
static int resolve_rows(access_request *r, warp *w, const ptx_instruction *i, uint32_t mask, const ptx_operand *o,
                        access_kind kind)
{
    const unsigned lanes = matrix_count(i) * ROWS;
    const uint32_t givers = lanes == PTX_LANES ? FULL_MASK : (1u << lanes) - 1;
    const uint32_t needed = kind == ACCESS_READ ? givers : FULL_MASK;
    if ((mask & needed) != needed)
        return fault_raise(w, i, (unsigned)__builtin_ctz(needed & ~mask), FAULT_LANES, "%s without this thread, which it needs",
                           kind == ACCESS_READ ? "ldmatrix" : "stmatrix");
    access_begin(r, w, i, givers, o, i->modifier[MOD_SPACE], kind, ROW_BYTES);
    /* What a lane's address names goes to many lanes: without an order between them and its writer it may be too early. */
    if (kind == ACCESS_READ) r->together = mask;
    if (i->modifier[MOD_SPACE] == SPACE_GENERIC)
        for (unsigned lane = 0; lane < lanes; lane++)
            if ((r->address[lane] & WINDOW_MASK) != SHARED_WINDOW)
                return fault_raise(w, i, lane, FAULT_OUT_OF_BOUNDS, "row address 0x%llx is not in shared memory",
                                   (unsigned long long)r->address[lane]);
    return access_resolve(r);
}

static int run_ldmatrix(warp *w, const ptx_instruction *i, uint32_t mask)
{
    access_request r;
    if (resolve_rows(&r, w, i, mask, operand_at(i, 1, 0), ACCESS_READ)) return 1;
    for (unsigned n = 0; n < matrix_count(i); n++) {
        uint32_t *to = slot32(w, operand_at(i, 0, n)->slot);
        uint8_t *const *rows = r.at + n * ROWS;
        FOR_LANES(mask, lane, memcpy(&to[lane], rows[lane / 4] + lane % 4 * 4, 4));
    }
    return 0;
}

static int run_ldmatrix_trans(warp *w, const ptx_instruction *i, uint32_t mask)
{
    access_request r;
    if (resolve_rows(&r, w, i, mask, operand_at(i, 1, 0), ACCESS_READ)) return 1;
    for (unsigned n = 0; n < matrix_count(i); n++) {
        uint32_t *to = slot32(w, operand_at(i, 0, n)->slot);
        uint8_t *const *rows = r.at + n * ROWS;
        FOR_LANES(mask, lane, {
            uint16_t low, high;
            memcpy(&low, rows[lane % 4 * 2] + lane / 4 * 2, 2);
            memcpy(&high, rows[lane % 4 * 2 + 1] + lane / 4 * 2, 2);
            to[lane] = low | (uint32_t)high << 16;
        });
    }
    return 0;
}

static int run_stmatrix(warp *w, const ptx_instruction *i, uint32_t mask)
{
    access_request r;
    const int trans = i->modifier[MOD_TRANS];
    if (resolve_rows(&r, w, i, mask, operand_at(i, 0, 0), ACCESS_WRITE)) return 1;
    for (unsigned n = 0; n < matrix_count(i); n++) {
        const uint32_t *from = slot32(w, operand_at(i, 1, n)->slot);
        uint8_t *const *rows = r.at + n * ROWS;
        for (unsigned lane = 0; lane < PTX_LANES; lane++) {
            const uint16_t low = (uint16_t)from[lane], high = (uint16_t)(from[lane] >> 16);
            const unsigned along = lane % 4 * 2, across = lane / 4;
            memcpy(trans ? rows[along] + across * 2 : rows[across] + along * 2, &low, 2);
            memcpy(trans ? rows[along + 1] + across * 2 : rows[across] + along * 2 + 2, &high, 2);
        }
    }
    return 0;
}

static int is_matrix_form(const ptx_instruction *i, unsigned data, unsigned address)
{
    const unsigned space = i->modifier[MOD_SPACE];
    if (i->types != 1 || i->groups != 2 || !i->modifier[MOD_SYNC] || !i->modifier[MOD_ALIGNED]) return 0;
    if (i->modifier[MOD_SHAPE] != SHAPE_M8N8 || !i->modifier[MOD_COUNT] || i->count[data] != matrix_count(i)) return 0;
    if (space != SPACE_SHARED && space != SPACE_GENERIC) return 0;
    for (unsigned n = 0; n < i->count[data]; n++) {
        const ptx_operand *o = operand_at(i, data, n);
        if (o->kind != OPERAND_REGISTER || o->bits != 32) return 0;
    }
    const ptx_operand *o = operand_at(i, address, 0);
    return o->kind == OPERAND_ADDRESS && (o->bits == 32 || o->bits == 64);
}

ptx_run *BIND(ldmatrix)(const ptx_instruction *i)
{
    if (!is_matrix_form(i, 0, 1)) return NULL;
    return i->modifier[MOD_TRANS] ? run_ldmatrix_trans : run_ldmatrix;
}

ptx_run *BIND(stmatrix)(const ptx_instruction *i)
{
    return is_matrix_form(i, 1, 0) ? run_stmatrix : NULL;
}

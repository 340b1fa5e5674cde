/* Thread-local variables of a library, whose model is chosen by the compiler's flags. */
#include <stddef.h>

static int target = 5;
__thread int with_image = 33;
__thread int zero;
__thread char text[24] = "as new";
__thread int *pointer = &target;
__thread long last = -1;

/* 0 in a fresh block, else a bit for each variable that is not as new. */
int tls_is_used(void)
{
    const char *want = "as new";
    int used = 0;
    for (size_t i = 0; i < sizeof text; i++)
        if (text[i] != (i < 7 ? want[i] : 0))
            used |= text[i] ? 1 : 2;
    if (with_image != 33)
        used |= with_image ? 4 : 8;
    if (zero)
        used |= 16;
    if (pointer != &target)
        used |= pointer ? 32 : 64;
    if (last != -1)
        used |= last ? 128 : 256;
    return used;
}

void tls_spoil(int x)
{
    with_image = x;
    zero = x;
    text[x % 20] = 'z';
    text[20] = 'z';
    pointer = &with_image;
    last = x;
}

int tls_is_spoilt(int x)
{
    return with_image == x && zero == x && pointer == &with_image && last == x;
}

/* Thread-local variables of a library, whose model is chosen by the compiler's flags. */
#include <stddef.h>

static int target = 5;
__thread int with_image = 33;
__thread int zero;
__thread char text[24] = "as new";
__thread int *pointer = &target;
__thread long last = -1;

/* A sum that only a fresh block has. */
int tls_is_new(void)
{
    const char *want = "as new";
    for (size_t i = 0; i < 7; i++)
        if (text[i] != want[i])
            return 0;
    for (size_t i = 7; i < sizeof text; i++)
        if (text[i])
            return 0;
    return with_image == 33 && zero == 0 && pointer == &target && *pointer == 5 && last == -1;
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

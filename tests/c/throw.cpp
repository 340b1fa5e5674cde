// Exceptions through many frames, with destructors on the way, for the storms of preempted threads.
#include <atomic>
#include <exception>
#include <memory>
#include <pthread.h>
#include <stdexcept>
#include <string>
#include <vector>

namespace {
struct Count {
    std::atomic<long> *at;
    explicit Count(std::atomic<long> *a) : at(a) { at->fetch_add(1); }
    Count(const Count &) = delete;
    ~Count() { at->fetch_sub(1); }
};

struct Special : std::runtime_error {
    int value;
    explicit Special(int v) : std::runtime_error("special " + std::to_string(v)), value(v) {}
};

__attribute__((noinline)) int fall(int depth, int value, std::atomic<long> *alive)
{
    Count here(alive);
    std::string text(static_cast<size_t>(depth) + 20, 'x');
    if (depth == 0)
        throw Special(value);
    try {
        return fall(depth - 1, value, alive) + static_cast<int>(text.size());
    } catch (const std::logic_error &) {
        return -1;
    } catch (...) {
        if (depth % 3 == 0)
            throw;
        std::exception_ptr kept = std::current_exception();
        std::rethrow_exception(kept);
    }
}

thread_local std::vector<int> own_vector{1, 2, 3};
std::atomic<long> destroyed{0};
struct Last {
    std::string text = "a text that is longer than the small string's room";
    ~Last() { destroyed.fetch_add(1); }
};
thread_local Last last;
} // namespace

extern "C" {
// 0 if the exception arrived whole and everything was destroyed on the way.
int storm_throw(int depth, int value)
{
    std::atomic<long> alive{0};
    int bad = 0;
    try {
        fall(depth, value, &alive);
        bad |= 1;
    } catch (const Special &s) {
        if (s.value != value)
            bad |= 2;
        if (s.what() != "special " + std::to_string(value))
            bad |= 4;
    }
    if (alive.load() != 0)
        bad |= 8;
    if (std::uncaught_exceptions() != 0)
        bad |= 16;
    return bad;
}

// Touches variables with constructors and destructors; 0 if they are as new.
int storm_thread_local(void)
{
    int bad = own_vector.size() == 3 && own_vector[2] == 3 ? 0 : 1;
    if (last.text.size() < 30)
        bad |= 2;
    last.text += "x";
    own_vector.push_back(4);
    return bad;
}

long storm_destroyed(void)
{
    return destroyed.load();
}

// Ends the thread with objects on the stack, which must be destroyed.
void storm_exit_through(int depth, std::atomic<long> *alive)
{
    Count here(alive);
    auto owned = std::make_unique<Count>(alive);
    if (depth == 0)
        pthread_exit(nullptr);
    storm_exit_through(depth - 1, alive);
}
}

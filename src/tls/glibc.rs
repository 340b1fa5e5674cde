//! What the C library tells about its threads, found by symbol at run time.
//!
//! glibc exports what a debugger needs to know of `struct pthread` as descriptors
//! `_thread_db_pthread_FIELD`: three words {bits, count, offset}. No layout is written down here; a
//! missing symbol makes the start fail and names the symbol.

use crate::error::{Error, Kind};
use core::ffi::{CStr, c_int, c_void};
use std::sync::OnceLock;

/// Functions and offsets of this process's glibc. All offsets are in bytes from the thread pointer.
#[derive(Debug)]
pub(crate) struct Glibc {
    /// Allocates the dynamic thread vector of a TLS block and fills the block from the modules' images.
    pub allocate_tls: unsafe extern "C" fn(*mut c_void) -> *mut c_void,
    /// Runs the destructors registered with `__cxa_thread_atexit_impl` in the running thread.
    pub call_tls_dtors: unsafe extern "C" fn(),
    /// Makes the running thread's character tables follow its locale.
    pub ctype_init: unsafe extern "C" fn(),
    /// The table of pthread keys.
    pub keys: *const u8,
    /// Bytes of an entry of that table, offset of its sequence number and of its destructor.
    pub key_size: usize,
    pub key_seq: usize,
    pub key_destr: usize,
    /// How many keys there are.
    pub key_count: usize,
    /// Bytes of a thread's key datum, offsets of its sequence number and value.
    pub data_size: usize,
    pub data_seq: usize,
    pub data_value: usize,
    /// Key data in a block of the second level.
    pub data_per_block: usize,
    /// The pointers to the blocks of the second level, and how many.
    pub specific: usize,
    pub specific_blocks: usize,
    /// Bytes of `struct pthread`.
    pub sizeof_pthread: usize,
    /// Node on the list of stacks.
    pub list: usize,
    /// Kernel thread id.
    pub tid: usize,
    /// Bits of cancellation.
    pub cancelhandling: usize,
    /// Start routine; its argument follows.
    pub start_routine: usize,
    /// A flag whose word also holds `user_stack`.
    pub report_events: usize,
    /// Dynamic thread vector: its pointer, the size of an entry, the offset of the address in it.
    pub dtvp: usize,
    pub dtv_entry: usize,
    pub dtv_val: usize,
    /// Area of restartable sequences, and its size.
    pub rseq: isize,
    pub rseq_size: usize,
    /// The loader's table of modules with thread-local variables.
    pub slotinfo: SlotInfo,
    /// Bytes of a whole TLS block and its alignment.
    pub static_size: usize,
    pub static_align: usize,
}

/// The loader's list of tables `module number -> link map`, and two fields of a link map.
#[derive(Debug)]
pub(crate) struct SlotInfo {
    /// Where the pointer to the first table is.
    pub head: *const *const u8,
    /// Offset of the pointer to the next table, and of the entries. The first word is their number.
    pub next: usize,
    pub entries: usize,
    /// Bytes of an entry, and the offsets of its link map and of its generation.
    pub entry_size: usize,
    pub map: usize,
    pub generation: usize,
    /// In a link map: the module's number, and how far below the thread pointer its block is.
    pub map_modid: usize,
    pub map_offset: usize,
}

// SAFETY: addresses of code and of process-wide tables.
unsafe impl Send for Glibc {}
// SAFETY: as above; immutable.
unsafe impl Sync for Glibc {}

/// The C library of this process, looked up once.
pub(crate) fn get() -> Result<&'static Glibc, Error> {
    static FOUND: OnceLock<Glibc> = OnceLock::new();
    if let Some(g) = FOUND.get() {
        return Ok(g);
    }
    let g = look_up()?;
    Ok(FOUND.get_or_init(|| g))
}

/// The C library, where a runtime has been started before.
#[inline]
pub(crate) fn known() -> &'static Glibc {
    match get() {
        Ok(g) => g,
        Err(e) => panic!("no runtime was started: {e}"),
    }
}

/// The address of `name`, as the default lookup order finds it.
pub(crate) fn symbol(name: &'static CStr) -> Result<*mut c_void, Error> {
    // SAFETY: the name is a C string.
    let p = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    if p.is_null() {
        return Err(Kind::MissingSymbol(name.to_str().unwrap_or("?")).into());
    }
    Ok(p)
}

/// A debugger's descriptor of a field.
#[derive(Clone, Copy)]
struct Field {
    bits: usize,
    count: usize,
    offset: usize,
}

fn field(name: &'static CStr) -> Result<Field, Error> {
    let p = symbol(name)?.cast::<u32>();
    // SAFETY: a descriptor is three 32-bit words (nptl_db's db_info).
    let [bits, count, offset] = unsafe { p.cast::<[u32; 3]>().read() };
    Ok(Field { bits: bits as usize, count: count as usize, offset: offset as usize })
}

fn size(name: &'static CStr) -> Result<usize, Error> {
    // SAFETY: the debugger's size symbols are 32-bit words.
    Ok(unsafe { symbol(name)?.cast::<u32>().read() } as usize)
}

fn look_up() -> Result<Glibc, Error> {
    let specific = field(c"_thread_db_pthread_specific")?;
    let keys = field(c"_thread_db___pthread_keys")?;
    let level2 = field(c"_thread_db_pthread_key_data_level2_data")?;
    let data_size = size(c"_thread_db_sizeof_pthread_key_data")?;
    let key_size = size(c"_thread_db_sizeof_pthread_key_struct")?;
    let dtv = field(c"_thread_db_dtv_dtv")?;
    let (mut static_size, mut static_align) = (0usize, 0usize);
    let info = symbol(c"_dl_get_tls_static_info")?;
    // SAFETY: the function's type in glibc: (size_t *, size_t *) -> void.
    let info: unsafe extern "C" fn(*mut usize, *mut usize) = unsafe { core::mem::transmute(info) };
    // SAFETY: both pointers are to locals.
    unsafe { info(&mut static_size, &mut static_align) };
    let allocate = symbol(c"_dl_allocate_tls")?;
    let dtors = symbol(c"__call_tls_dtors")?;
    let ctype = symbol(c"__ctype_init")?;
    // SAFETY: reads a pointer-sized public constant (sys/rseq.h).
    let rseq = unsafe { symbol(c"__rseq_offset")?.cast::<isize>().read() };
    Ok(Glibc {
        // SAFETY: the function's type in glibc: void *(*)(void *).
        allocate_tls: unsafe {
            core::mem::transmute::<*mut c_void, unsafe extern "C" fn(*mut c_void) -> *mut c_void>(
                allocate,
            )
        },
        // SAFETY: the function's type in glibc: void (*)(void).
        call_tls_dtors: unsafe {
            core::mem::transmute::<*mut c_void, unsafe extern "C" fn()>(dtors)
        },
        // SAFETY: as above.
        ctype_init: unsafe { core::mem::transmute::<*mut c_void, unsafe extern "C" fn()>(ctype) },
        keys: symbol(c"__pthread_keys")?.cast(),
        key_size,
        key_seq: field(c"_thread_db_pthread_key_struct_seq")?.offset,
        key_destr: field(c"_thread_db_pthread_key_struct_destr")?.offset,
        key_count: keys.bits * keys.count.max(1) / 8 / key_size.max(1),
        data_size,
        data_seq: field(c"_thread_db_pthread_key_data_seq")?.offset,
        data_value: field(c"_thread_db_pthread_key_data_data")?.offset,
        data_per_block: level2.bits * level2.count.max(1) / 8 / data_size.max(1),
        specific: specific.offset,
        specific_blocks: specific.bits * specific.count.max(1) / 64,
        sizeof_pthread: size(c"_thread_db_sizeof_pthread")?,
        list: field(c"_thread_db_pthread_list")?.offset,
        tid: field(c"_thread_db_pthread_tid")?.offset,
        cancelhandling: field(c"_thread_db_pthread_cancelhandling")?.offset,
        start_routine: field(c"_thread_db_pthread_start_routine")?.offset,
        report_events: field(c"_thread_db_pthread_report_events")?.offset,
        dtvp: field(c"_thread_db_pthread_dtvp")?.offset,
        dtv_entry: dtv.bits / 8,
        dtv_val: field(c"_thread_db_dtv_t_pointer_val")?.offset,
        rseq,
        // The area that the kernel writes is at least the first 32 bytes, whatever the public size says.
        rseq_size: 32,
        slotinfo: slot_info()?,
        static_size,
        static_align: static_align.max(64),
    })
}

fn slot_info() -> Result<SlotInfo, Error> {
    let head = field(c"_thread_db_rtld_global__dl_tls_dtv_slotinfo_list")?.offset;
    Ok(SlotInfo {
        head: symbol(c"_rtld_global")?.cast::<u8>().wrapping_add(head).cast_const().cast(),
        next: field(c"_thread_db_dtv_slotinfo_list_next")?.offset,
        entries: field(c"_thread_db_dtv_slotinfo_list_slotinfo")?.offset,
        entry_size: size(c"_thread_db_sizeof_dtv_slotinfo")?,
        map: field(c"_thread_db_dtv_slotinfo_map")?.offset,
        generation: field(c"_thread_db_dtv_slotinfo_gen")?.offset,
        map_modid: field(c"_thread_db_link_map_l_tls_modid")?.offset,
        map_offset: field(c"_thread_db_link_map_l_tls_offset")?.offset,
    })
}

/// The release of the running C library, e.g. "2.36".
pub(crate) fn version() -> String {
    // SAFETY: returns a constant C string.
    unsafe { CStr::from_ptr(libc::gnu_get_libc_version()) }.to_string_lossy().into_owned()
}

/// Offset of the running thread's errno from its thread pointer: one for all threads.
pub(crate) fn errno_offset() -> isize {
    // SAFETY: returns the address of the running thread's errno.
    let p: *mut c_int = unsafe { libc::__errno_location() };
    (p as isize).wrapping_sub(super::hot::fs_base() as isize)
}

//! Helper libraries in C and C++, compiled when a test needs them, loaded by dlopen.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

/// A place for a file that no other test uses.
fn fresh(name: &str, suffix: &str) -> PathBuf {
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!(
        "{}-{}",
        env!("CARGO_CRATE_NAME"),
        std::process::id()
    ));
    std::fs::create_dir_all(&folder).unwrap();
    folder.join(format!("{name}-{}{suffix}", NUMBER.fetch_add(1, SeqCst)))
}

/// Compiles `source` (a path) into a shared library with `flags`; the compiler goes by the file's name.
fn compile(source: &Path, flags: &[&str]) -> PathBuf {
    let cpp = source.extension().is_some_and(|e| e == "cpp");
    let library = fresh(source.file_stem().unwrap().to_str().unwrap(), ".so");
    let out = Command::new(if cpp { "c++" } else { "cc" })
        .args([
            "-shared",
            "-fPIC",
            "-O2",
            "-g",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-Wno-infinite-recursion",
        ])
        .args(flags)
        .arg("-o")
        .arg(&library)
        .arg(source)
        .args(["-lm", "-lpthread"])
        .output()
        .expect("there is a compiler");
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    library
}

/// Compiles `tests/c/<name>`.
pub fn library(name: &str, flags: &[&str]) -> PathBuf {
    compile(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c").join(name), flags)
}

/// Compiles C text.
pub fn library_of(name: &str, text: &str, flags: &[&str]) -> PathBuf {
    let source = fresh(name, ".c");
    std::fs::write(&source, text).unwrap();
    compile(&source, flags)
}

/// A copy that the loader takes for another library.
pub fn copy_of(library: &Path) -> PathBuf {
    let copy = fresh("copy", ".so");
    std::fs::copy(library, &copy).unwrap();
    copy
}

/// An open library.
pub struct Lib(*mut c_void);

// SAFETY: handles of dlopen belong to the process.
unsafe impl Send for Lib {}
// SAFETY: as above.
unsafe impl Sync for Lib {}

impl Lib {
    /// Opens `path` with dlopen's `flags`.
    #[track_caller]
    pub fn open(path: &Path, flags: c_int) -> Lib {
        let name = CString::new(path.to_str().unwrap()).unwrap();
        // SAFETY: a C string; the library is one of these tests.
        let handle = unsafe { libc::dlopen(name.as_ptr(), flags) };
        assert!(!handle.is_null(), "{}", error());
        Lib(handle)
    }

    /// Compiles and opens `tests/c/<name>` for good.
    pub fn of(name: &str) -> Lib {
        Lib::open(&library(name, &[]), libc::RTLD_NOW)
    }

    /// The function `name` as an `F`.
    ///
    /// # Safety
    /// `F` is the type of a pointer to that function.
    #[track_caller]
    pub unsafe fn get<F: Copy>(&self, name: &CStr) -> F {
        // SAFETY: the handle is open.
        let at = unsafe { libc::dlsym(self.0, name.as_ptr()) };
        assert!(!at.is_null(), "{}", error());
        // SAFETY: the caller's promise.
        unsafe { std::mem::transmute_copy::<*mut c_void, F>(&at) }
    }

    /// Closes the library.
    #[track_caller]
    pub fn close(self) {
        // SAFETY: the handle is open; nothing of it is used afterwards.
        let rc = unsafe { libc::dlclose(self.0) };
        assert_eq!(rc, 0, "{}", error());
    }
}

fn error() -> String {
    // SAFETY: the text belongs to this thread until the next call.
    let text: *const c_char = unsafe { libc::dlerror() };
    if text.is_null() {
        return "no error".to_owned();
    }
    // SAFETY: a C string.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

//! Programs that misuse the interface do not compile, for the reason that they should not.
//!
//! The expected messages are in `misuse/*.stderr`; `TRYBUILD=overwrite` writes them anew for another
//! compiler.

#[test]
fn misuse_does_not_compile() {
    trybuild::TestCases::new().compile_fail("tests/misuse/*.rs");
}

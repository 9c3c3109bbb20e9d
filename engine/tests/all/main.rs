//! The integration tests in one program, because each program links the whole engine. Random programs on the simulated
//! network are in `sim`, which has a harness of its own.
//!
//! One test alone: `cargo test --workspace --test all -- scenarios::rates::calls_that_do_not_wait_fail_at_once`.

/// The error is of that kind.
macro_rules! assert_kind {
    ($error:expr, $kind:pat $(if $guard:expr)?) => {{
        let error = &$error;
        assert!(matches!(error.kind(), $kind $(if $guard)?), "{error:?}");
    }};
}

mod api;
mod lifetime;
mod scenarios;
mod shared;

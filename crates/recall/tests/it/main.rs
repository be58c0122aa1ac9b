//! Tests of the crate as an application uses it.

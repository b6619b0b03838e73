//! The derive macro of `homeostat`, which re-exports it: use it from there.

mod expand;
mod input;

use proc_macro::TokenStream;

/// Implements `homeostat::Classify`: says of each variant of an error how it is answered.
///
/// | on a variant, or on a struct | what follows |
/// |---|---|
/// | `#[classify(transient)]` | it passes by itself: tried again after the object's next delay |
/// | `#[classify(transient, reason = "InventoryDown")]` | the same, and the condition of the object says why |
/// | `#[classify(conflict)]` | somebody else was faster: tried again in a moment, and no failure |
/// | `#[classify(permanent, reason = "InvalidSpec")]` | nothing helps but a change: waits for one |
/// | none of them | as the error that it comes from says |
///
/// The error that a variant comes from is its field with `#[from]` or `#[source]`, the one that is
/// called `source`, or the only one under `#[error(transparent)]`: as `thiserror` has it. An
/// attribute on the variant takes precedence.
///
/// A variant that has neither is an error of compilation: nobody can guess what is to follow. The
/// reason of a permanent error stands in conditions, so it is CamelCase.
#[proc_macro_derive(Classify, attributes(classify))]
pub fn classify(input: TokenStream) -> TokenStream {
    let input = syn::parse_macro_input!(input as syn::DeriveInput);
    input::Input::of(input)
        .map_or_else(syn::Error::into_compile_error, |input| {
            expand::expand(&input)
        })
        .into()
}

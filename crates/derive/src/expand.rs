//! What the macro writes.

use crate::input::{Case, Class, Input};
use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote, quote_spanned};
use syn::{Type, parse_quote, spanned::Spanned};

pub(crate) fn expand(input: &Input) -> TokenStream {
    let Input {
        name,
        generics,
        cases,
    } = input;
    let body = if cases.is_empty() {
        quote!(match *self {})
    } else {
        let arms = cases.iter().map(arm);
        quote!(match self { #(#arms)* })
    };
    let reason = if cases.is_empty() {
        quote!(match *self {})
    } else {
        let arms = cases.iter().map(reason_arm);
        quote!(match self { #(#arms)* })
    };

    let parameters: Vec<&Ident> = generics.type_params().map(|param| &param.ident).collect();
    let mut generics = generics.clone();
    for Case { class, .. } in cases {
        // A bound on a type without parameters would make a type that contains itself impossible.
        if let Class::OfSource { ty, .. } = class
            && mentions(ty.to_token_stream(), &parameters)
        {
            let bound = parse_quote!(#ty: ::homeostat::Classify);
            generics.make_where_clause().predicates.push(bound);
        }
    }
    let (impl_generics, type_generics, where_clause) = generics.split_for_impl();
    quote! {
        #[automatically_derived]
        impl #impl_generics ::homeostat::Classify for #name #type_generics #where_clause {
            fn classify(&self) -> ::homeostat::ErrorClass {
                #body
            }

            fn reason(&self) -> ::std::option::Option<::std::borrow::Cow<'static, str>> {
                #reason
            }
        }
    }
}

fn arm(case: &Case) -> TokenStream {
    let (path, class) = (path(case), &case.class);
    match class {
        Class::Transient { .. } => quote!(#path { .. } => ::homeostat::ErrorClass::Transient,),
        Class::Conflict => quote!(#path { .. } => ::homeostat::ErrorClass::Conflict,),
        Class::Permanent { reason } => quote! {
            #path { .. } => ::homeostat::ErrorClass::Permanent {
                reason: ::std::borrow::Cow::Borrowed(#reason),
            },
        },
        Class::OfSource { member, ty } => {
            let source = Ident::new("source", Span::mixed_site());
            let classified = of_source(ty, &source);
            quote!(#path { #member: #source, .. } => #classified,)
        }
    }
}

fn reason_arm(case: &Case) -> TokenStream {
    let (path, class) = (path(case), &case.class);
    match class {
        Class::Transient { reason: None } | Class::Conflict => {
            quote!(#path { .. } => ::std::option::Option::None,)
        }
        Class::Transient {
            reason: Some(reason),
        }
        | Class::Permanent { reason } => quote! {
            #path { .. } => ::std::option::Option::Some(::std::borrow::Cow::Borrowed(#reason)),
        },
        Class::OfSource { member, ty } => {
            let source = Ident::new("source", Span::mixed_site());
            // What is wrong with the type is told once, by the other function.
            let told = quote!(<#ty as ::homeostat::Classify>::reason(#source));
            quote!(#path { #member: #source, .. } => #told,)
        }
    }
}

/// The pattern of a case, without its fields.
fn path(case: &Case) -> TokenStream {
    let variant = case.variant.as_ref();
    variant.map_or_else(|| quote!(Self), |variant| quote!(Self::#variant))
}

/// The call, at the place of the field's type: there a class is missing if one is.
fn of_source(ty: &Type, source: &Ident) -> TokenStream {
    quote_spanned!(ty.span()=> <#ty as ::homeostat::Classify>::classify(#source))
}

/// Whether one of the parameters occurs.
fn mentions(tokens: TokenStream, parameters: &[&Ident]) -> bool {
    tokens.into_iter().any(|token| match token {
        TokenTree::Ident(word) => parameters.contains(&&word),
        TokenTree::Group(group) => mentions(group.stream(), parameters),
        TokenTree::Punct(_) | TokenTree::Literal(_) => false,
    })
}

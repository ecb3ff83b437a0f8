//! Writes the new function, or the errors.

use std::iter;

use proc_macro::{Delimiter, Group, Literal, Span, TokenStream, TokenTree};

use crate::Kind;
use crate::args::{self, Flavor};
use crate::error::Error;
use crate::signature::{self, Signature};
use crate::token::{reduce, without_invisible_groups};

/// The whole macro: from the arguments and the function to the function that starts a runtime.
pub(crate) fn expand(kind: Kind, args: TokenStream, item: TokenStream) -> TokenStream {
    let args = without_invisible_groups(args);
    let item: Vec<TokenTree> = item.into_iter().collect();

    let flavor = args::parse(kind, &reduce(&args));
    let signature = signature::parse(kind, &reduce(&item));

    // Wrong arguments do not hide what is wrong with the function, nor the other way round. The
    // function is there in any case, so that the compiler does not report it missing as well.
    let mut output = TokenStream::new();
    if let Err(error) = &flavor {
        output.extend(compile_error(error, &args));
    }
    match signature {
        Ok(signature) => {
            let flavor = flavor.unwrap_or(Flavor::default_of(kind));
            output.extend(wrap(kind, flavor, &item, &signature));
        }
        Err(error) => {
            output.extend(compile_error(&error, &item));
            output.extend(stand_in(&item));
        }
    }
    output
}

/// The new function: that of the user, unchanged, inside of a plain one that runs it.
///
/// ```text
/// #[user::attributes]
/// pub fn name() -> Return {
///     async fn name() -> Return { … }
///     ::wakerun::Builder::….block_on(name())
/// }
/// ```
///
/// An `async fn` and not an `async` block, because a block would have to infer the type that the
/// function declares: `?` would not know its error type, and a body of the wrong type would be
/// reported far from where it stands. The inner function has the name of the outer one, so that
/// it hides nothing else from the body.
fn wrap(kind: Kind, flavor: Flavor, item: &[TokenTree], signature: &Signature) -> TokenStream {
    let (body, head) = item.split_last().expect("a signature has a body");
    let name = &item[signature.name];

    let mut inner: TokenStream = head[signature.async_keyword..].iter().cloned().collect();
    inner.extend(without_invisible_groups(body.clone().into()));
    inner.extend(run(flavor, name));

    let mut outer = TokenStream::new();
    if kind == Kind::Test {
        outer.extend(parse("#[::core::prelude::v1::test]"));
    }
    outer.extend(head[..signature.async_keyword].iter().cloned());
    outer.extend(head[signature.async_keyword + 1..].iter().cloned());
    outer.extend([braces(inner, body.span())]);
    outer
}

/// `::wakerun::Builder::….block_on(name())`
fn run(flavor: Flavor, name: &TokenTree) -> TokenStream {
    let builder = match flavor {
        Flavor::CurrentThread => "new_current_thread()".to_owned(),
        Flavor::MultiThread { workers: None } => "new_multi_thread()".to_owned(),
        Flavor::MultiThread {
            workers: Some(workers),
        } => format!("new_multi_thread().worker_threads({workers})"),
    };
    let call: TokenStream = [name.clone(), parentheses(TokenStream::new())]
        .into_iter()
        .collect();
    let mut tokens = parse(&format!(
        "::wakerun::Builder::{builder}
            .build()
            .expect(\"failed to start the wakerun runtime\")
            .block_on"
    ));
    tokens.extend([parentheses(call)]);
    tokens
}

/// Takes the place of a function that cannot be used.
///
/// A wrong `main` goes into an empty one: without any, the compiler would complain about that as
/// well. Anything else stays as it is.
fn stand_in(item: &[TokenTree]) -> TokenStream {
    let is_async_main = item
        .windows(2)
        .any(|pair| is_ident(&pair[0], "fn") && is_ident(&pair[1], "main"))
        && item.iter().any(|tree| is_ident(tree, "async"));
    let item: TokenStream = item.iter().cloned().collect();
    if !is_async_main {
        return item;
    }
    let mut main = parse("#[allow(dead_code)] fn main()");
    main.extend([braces(item, Span::call_site())]);
    main
}

/// `::core::compile_error! { "message" }`, shown at the error's place in `trees`.
fn compile_error(error: &Error, trees: &[TokenTree]) -> TokenStream {
    let span = |at: usize| trees.get(at).map_or_else(Span::call_site, TokenTree::span);
    // The compiler underlines from the first token of the macro call to its last.
    let (first, last) = (span(*error.place.start()), span(*error.place.end()));

    let mut message = Literal::string(&error.message);
    message.set_span(last);
    let message = TokenStream::from(TokenTree::from(message));
    parse("::core::compile_error!")
        .into_iter()
        .map(|mut tree| {
            tree.set_span(first);
            tree
        })
        .chain(iter::once(braces(message, last)))
        .collect()
}

/// Tokens from text. They belong to the macro call, and lints leave them alone.
fn parse(code: &str) -> TokenStream {
    code.parse().expect("the macro writes valid tokens")
}

fn braces(stream: TokenStream, span: Span) -> TokenTree {
    let mut group = Group::new(Delimiter::Brace, stream);
    group.set_span(span);
    group.into()
}

fn parentheses(stream: TokenStream) -> TokenTree {
    Group::new(Delimiter::Parenthesis, stream).into()
}

fn is_ident(tree: &TokenTree, expected: &str) -> bool {
    matches!(tree, TokenTree::Ident(ident) if ident.to_string() == expected)
}

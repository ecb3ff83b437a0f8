//! What is wrong, and where, in places instead of compiler spans.

use std::ops::RangeInclusive;

/// An error in a list of tokens.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Error {
    /// The message for the user.
    pub(crate) message: String,
    /// The first and the last token it is about, by their places in the list. A place behind the
    /// list stands for the attribute itself: something is missing, and there is nothing to show.
    pub(crate) place: RangeInclusive<usize>,
}

impl Error {
    /// An error about one token.
    pub(crate) fn at(place: usize, message: impl Into<String>) -> Self {
        Error::from_to(place, place, message)
    }

    /// An error about all tokens from `first` to `last`.
    pub(crate) fn from_to(first: usize, last: usize, message: impl Into<String>) -> Self {
        Error {
            message: message.into(),
            place: first..=last,
        }
    }
}

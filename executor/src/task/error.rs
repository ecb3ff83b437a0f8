//! Why a task gave no output.

use std::any::Any;
use std::fmt;
use std::sync::Mutex;

use super::Id;

/// A task ended without an output: it was cancelled, or it panicked.
///
/// ```
/// wakerun::block_on(async {
///     let task = wakerun::spawn(std::future::pending::<()>());
///     task.abort();
///     assert!(task.await.unwrap_err().is_cancelled());
/// });
/// ```
pub struct JoinError {
    id: Id,
    /// The lock makes the error `Sync`, as error types are expected to be; it is never contended.
    cause: Cause,
}

enum Cause {
    Cancelled,
    Panic(Mutex<Box<dyn Any + Send + 'static>>),
}

impl JoinError {
    pub(crate) fn cancelled(id: Id) -> Self {
        Self {
            id,
            cause: Cause::Cancelled,
        }
    }

    pub(crate) fn panicked(id: Id, payload: Box<dyn Any + Send + 'static>) -> Self {
        Self {
            id,
            cause: Cause::Panic(Mutex::new(payload)),
        }
    }

    /// Whether the task was aborted, or its runtime ended first.
    pub fn is_cancelled(&self) -> bool {
        matches!(self.cause, Cause::Cancelled)
    }

    /// Whether the task panicked.
    ///
    /// ```
    /// wakerun::block_on(async {
    ///     let task = wakerun::spawn(async { panic!("on purpose") });
    ///     assert!(task.await.unwrap_err().is_panic());
    /// });
    /// ```
    pub fn is_panic(&self) -> bool {
        matches!(self.cause, Cause::Panic(_))
    }

    /// The panic's payload, for [`std::panic::resume_unwind`] or a downcast.
    ///
    /// # Panics
    /// If the task did not panic; [`try_into_panic`](Self::try_into_panic) asks first.
    ///
    /// ```
    /// wakerun::block_on(async {
    ///     let task = wakerun::spawn(async { panic!("on purpose") });
    ///     let payload = task.await.unwrap_err().into_panic();
    ///     assert_eq!(*payload.downcast::<&str>().unwrap(), "on purpose");
    /// });
    /// ```
    #[track_caller]
    pub fn into_panic(self) -> Box<dyn Any + Send + 'static> {
        self.try_into_panic()
            .expect("`into_panic` on the error of a task that was cancelled, not one that panicked")
    }

    /// The panic's payload.
    ///
    /// # Errors
    /// The error itself, if the task was cancelled.
    pub fn try_into_panic(self) -> Result<Box<dyn Any + Send + 'static>, JoinError> {
        match self.cause {
            Cause::Panic(payload) => Ok(payload
                .into_inner()
                .unwrap_or_else(|poisoned| poisoned.into_inner())),
            Cause::Cancelled => Err(self),
        }
    }

    /// The task that ended so.
    pub fn id(&self) -> Id {
        self.id
    }

    /// The message of a panic with a text, as almost all have.
    fn message(&self) -> Option<String> {
        let Cause::Panic(payload) = &self.cause else {
            return None;
        };
        let payload = payload
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(text) = payload.downcast_ref::<&'static str>() {
            return Some((*text).to_owned());
        }
        payload.downcast_ref::<String>().cloned()
    }
}

impl fmt::Display for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.cause, self.message()) {
            (Cause::Cancelled, _) => write!(f, "task {} was cancelled", self.id),
            (Cause::Panic(_), Some(message)) => {
                write!(f, "task {} panicked: {message}", self.id)
            }
            (Cause::Panic(_), None) => write!(f, "task {} panicked", self.id),
        }
    }
}

impl fmt::Debug for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.cause {
            Cause::Cancelled => write!(f, "JoinError::Cancelled({:?})", self.id),
            Cause::Panic(_) => {
                write!(f, "JoinError::Panic({:?}, {:?})", self.id, self.message())
            }
        }
    }
}

impl std::error::Error for JoinError {}

impl From<JoinError> for std::io::Error {
    /// So that `task.await??` works in functions that return [`std::io::Result`].
    fn from(error: JoinError) -> Self {
        Self::other(error)
    }
}

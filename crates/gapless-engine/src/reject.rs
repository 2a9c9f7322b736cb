//! `Reject`: a handler's refusal, sent to the client.

/// A handler's refusal. The client gets code and text; the outputs of the call are dropped.
///
/// An event-sourced service keeps the state changes made before the refusal: check first, then change. Builds with
/// debug assertions and the simulator detect such changes and stop the service. Other builds can enable the check
/// ([`Policy::check_refusals`](crate::Policy::check_refusals),
/// [`CheckRefusals::Sometimes`](crate::fold::CheckRefusals::Sometimes)). A state-replicated service's changes are
/// undone.
///
/// Clients can act on the code: it is `detail` in `ClientError::Refused`, in `ExecutionOutcome::Refused` and in a reply's
/// refusal.
///
/// ```
/// # mod gapless { pub mod service { pub use gapless_engine::Reject; } }
/// use gapless::service::Reject;
///
/// const OUT_OF_STOCK: u64 = 7;
/// let with_a_code = Reject::new(OUT_OF_STOCK, "none of them is left");
/// let in_words_alone: Reject = "no such article".into();
/// assert_eq!((with_a_code.code, in_words_alone.code), (OUT_OF_STOCK, 0));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reject {
    /// 0 by default.
    pub code: u64,
    /// Truncated at 1,024 bytes.
    pub text: String,
}

impl Reject {
    #[must_use]
    pub fn new(code: u64, text: impl std::fmt::Display) -> Self {
        Self { code, text: text.to_string() }
    }
}

impl<T: std::fmt::Display> From<T> for Reject {
    fn from(reason: T) -> Self {
        Self::new(0, reason)
    }
}

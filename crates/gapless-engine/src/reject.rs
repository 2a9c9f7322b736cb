//! [`Reject`]: a handler's refusal, which the publisher gets.

/// A handler's refusal: the publisher gets code and text, outputs of this call are dropped.
///
/// State that the handler of an event-sourced service has changed before it refused stays changed: check first, then change. Builds with
/// debug assertions, and the simulator, look at that and stop the service
/// ([`Policy::check_refusals`](crate::Policy::check_refusals), which others may set to
/// [`CheckRefusals::Sometimes`](crate::fold::CheckRefusals::Sometimes)). A state-replicated service's changes are undone.
///
/// Programs act upon the code: a client finds it as `detail` in `ClientError::Refused`, in `Outcome::Refused` and in a reply's refusal.
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
    /// For programs: what the application means by it; 0 where it has said nothing.
    pub code: u64,
    /// For people; what is longer than 1,024 bytes is cut.
    pub text: String,
}

impl Reject {
    /// A refusal with a code of the application's own.
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

//! [`Observed`]: who looks at a call, if anybody does.

use super::interceptor::Interceptor;
use crate::options::CallOptions;
use crate::outcome::CallError;
use gapless_agent::foreign;
use gapless_trace::CallSpan;
use std::sync::Arc;
use std::time::Instant;
use tracing::Span;

/// Who looks at a call: interceptors, and whoever records its span.
pub(super) struct Observed {
    interceptors: Arc<[Arc<dyn Interceptor>]>,
    route: Arc<str>,
    began: Instant,
    span: Option<CallSpan>,
}

impl Observed {
    /// A call that begins now, and its options with its own trace.
    #[cold]
    pub(super) fn begin(
        interceptors: &Arc<[Arc<dyn Interceptor>]>,
        route: &Arc<str>,
        options: &CallOptions,
    ) -> (Box<Self>, CallOptions) {
        let (interceptors, route, mut options) = (Arc::clone(interceptors), Arc::clone(route), options.clone());
        let span = CallSpan::begin(&route, &mut options.trace);
        (Box::new(Self { interceptors, route, began: Instant::now(), span }), options)
    }

    pub(super) fn span(&self) -> Option<&Span> {
        self.span.as_ref().map(CallSpan::span)
    }

    /// The options as interceptors change them, or the refusal of one. They see the call's span as the current one.
    pub(super) fn ask(&self, mut options: CallOptions) -> Result<CallOptions, CallError> {
        let _entered = self.span().map(Span::enter);
        ask(&self.interceptors, &self.route, &mut options)?;
        Ok(options)
    }

    /// It was one whose reply nobody waits for, and was offered or not.
    pub(super) fn sent(&mut self, error: Option<&CallError>) {
        self.span.iter_mut().for_each(|span| span.sent(error.map(CallError::kind)));
    }

    pub(super) fn end(mut self, error: Option<&CallError>, attempts: u32) {
        let took = self.began.elapsed();
        self.span.iter_mut().for_each(|span| span.end(error.map(CallError::kind), attempts));
        for interceptor in self.interceptors.iter().rev() {
            foreign::run("an interceptor", || interceptor.after(&self.route, error, took));
        }
    }
}

/// Lets interceptors change the options of a call.
pub(super) fn ask(
    interceptors: &[Arc<dyn Interceptor>],
    route: &str,
    options: &mut CallOptions,
) -> Result<(), CallError> {
    interceptors.iter().try_for_each(|each| each.before(route, options).map_err(CallError::Refused))
}

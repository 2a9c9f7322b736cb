//! `ObservedCall`: the observers of a call, if it has any.

use super::interceptor::Interceptor;
use crate::options::CallOptions;
use crate::outcome::{CallError, Refusal};
use gapless_agent::foreign;
use gapless_trace::CallSpan;
use std::sync::Arc;
use std::time::Instant;
use tracing::Span;

pub(super) struct ObservedCall {
    interceptors: Arc<[Arc<dyn Interceptor>]>,
    route: Arc<str>,
    options: CallOptions,
    began: Instant,
    span: Option<CallSpan>,
}

impl ObservedCall {
    #[cold]
    pub(super) fn begin(
        interceptors: &Arc<[Arc<dyn Interceptor>]>,
        route: &Arc<str>,
        options: &CallOptions,
    ) -> (Box<Self>, CallOptions) {
        let (interceptors, route, mut options) = (Arc::clone(interceptors), Arc::clone(route), options.clone());
        let span = CallSpan::begin(&route, &mut options.trace);
        let (began, unasked) = (Instant::now(), CallOptions::default());
        (Box::new(Self { interceptors, route, options: unasked, began, span }), options)
    }

    pub(super) fn span(&self) -> Option<&Span> {
        self.span.as_ref().map(CallSpan::span)
    }

    pub(super) fn ask(&mut self, mut options: CallOptions) -> Result<CallOptions, CallError> {
        if self.interceptors.is_empty() {
            return Ok(options);
        }
        let asked = {
            let _entered = self.span().map(Span::enter);
            ask(&self.interceptors, &self.route, &mut options)
        };
        self.options.clone_from(&options);
        asked.map(|()| options)
    }

    pub(super) fn sent(&mut self, error: Option<&CallError>) {
        self.span.iter_mut().for_each(|span| span.sent(error.map(CallError::kind)));
    }

    pub(super) fn end(mut self, error: Option<&CallError>, attempts: u32) {
        let took = self.began.elapsed();
        self.span.iter_mut().for_each(|span| span.end(error.map(CallError::kind), attempts));
        for interceptor in self.interceptors.iter().rev() {
            foreign::run("an interceptor", || interceptor.after(&self.route, &self.options, error, took));
        }
    }
}

pub(super) fn ask(
    interceptors: &[Arc<dyn Interceptor>],
    route: &str,
    options: &mut CallOptions,
) -> Result<(), CallError> {
    let refused = |refusal| CallError::Refused { route: route.to_owned(), refusal };
    interceptors.iter().try_for_each(|each| {
        let asked = foreign::catch_panic(|| each.before(route, options));
        asked
            .unwrap_or_else(|panic| Err(Refusal::of_kind("panicked", format!("an interceptor panicked: {panic}"))))
            .map_err(refused)
    })
}

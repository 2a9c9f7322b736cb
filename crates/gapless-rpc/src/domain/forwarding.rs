//! Forwarding of a request from this process: to a route here, or else to other processes.

use super::membership::DomainShared;
use crate::caller::{CallerOptions, Reach};
use crate::local::{ForwardSupport, ForwardedRequest};
use crate::message::Message;
use crate::outcome::CallError;
use gapless_agent::foreign::catch_panic;
use std::sync::Arc;

/// Handlers consume the request value, so it is rebuilt from its bytes.
pub(super) fn of<Request: Message, Reply: Message>(domain: &Arc<DomainShared>) -> ForwardSupport<Request, Reply> {
    let domain = Arc::downgrade(domain);
    let hook = move |forwarded: ForwardedRequest<Request, Reply>| match domain.upgrade() {
        Some(domain) => forward(&domain, forwarded),
        None => forwarded.answer.end_forwarded(&forwarded.route, CallError::Closed),
    };
    ForwardSupport { keep: Some(rebuild), hook: Arc::new(hook) }
}

fn rebuild<Request: Message>(request: &Request) -> Option<Request> {
    let made = || {
        let mut bytes = Vec::new();
        request.encode(&mut bytes).ok()?;
        Request::decode(&bytes).ok()
    };
    // A panic here must not keep the handler from running.
    catch_panic(made).ok().flatten()
}

fn forward<Request: Message, Reply: Message>(domain: &Arc<DomainShared>, forwarded: ForwardedRequest<Request, Reply>) {
    match domain.local.get::<Request, Reply>(&forwarded.route) {
        Ok(Some(route)) => {
            if let Err(not_adopted) = route.adopt(forwarded) {
                let (ForwardedRequest { route, answer, .. }, error) = *not_adopted;
                answer.end_forwarded(&route, error);
            }
        }
        Ok(None) => forward_to_process(domain, forwarded),
        Err(error) => forwarded.answer.end_forwarded(&forwarded.route, error),
    }
}

fn forward_to_process<Request: Message, Reply: Message>(
    domain: &Arc<DomainShared>,
    forwarded: ForwardedRequest<Request, Reply>,
) {
    let ForwardedRequest { route, request, answer } = forwarded;
    let options = CallerOptions { reach: Reach::OtherProcesses, ..CallerOptions::default() };
    let caller = match domain.caller::<Request, Reply>(&route, options) {
        Ok(caller) => caller.forwarding(answer.offer().hops()),
        Err(error) => {
            let (attempts, reason) = (1, error.to_string());
            return answer.end_forwarded(&route, CallError::NotBegun { route: route.clone(), attempts, reason });
        }
    };
    let (options, span) = (answer.offer().options(), answer.offer().span().cloned());
    let _entered = span.as_ref().map(tracing::Span::enter);
    // Not a send, which might block the thread of a task.
    caller.start_with(request, &options).on_end(move |outcome| {
        if let (true, Err(error)) = (answer.is_one_way(), &outcome) {
            tracing::debug!(route, %error, "what nobody waits for does not go on");
        }
        match outcome {
            Ok(reply) => answer.reply(reply),
            Err(error) => answer.end_forwarded(&route, error),
        }
    });
}

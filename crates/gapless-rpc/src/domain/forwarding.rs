//! Forwarding of a request from this process: to a route here, or else to other processes.

use super::membership::Shared;
use crate::caller::{CallerOptions, Reach};
use crate::local::{Forwarded, Forwarding};
use crate::message::Message;
use crate::outcome::CallError;
use gapless_agent::foreign::caught;
use std::sync::Arc;

/// Hook for a route whose handlers forward. Handlers consume the request value, so it is rebuilt from its bytes.
pub(super) fn of<Request: Message, Reply: Message>(domain: &Arc<Shared>) -> Forwarding<Request, Reply> {
    let domain = Arc::downgrade(domain);
    let hook = move |forwarded: Forwarded<Request, Reply>| match domain.upgrade() {
        Some(domain) => go_on(&domain, forwarded),
        None => forwarded.answer.end_forwarded(&forwarded.route, CallError::Closed),
    };
    Forwarding { keep: Some(made_anew), hook: Arc::new(hook) }
}

fn made_anew<Request: Message>(request: &Request) -> Option<Request> {
    let made = || {
        let mut bytes = Vec::new();
        request.encode(&mut bytes).ok()?;
        Request::decode(&bytes).ok()
    };
    // A panic here must not keep the handler from running.
    caught(made).ok().flatten()
}

fn go_on<Request: Message, Reply: Message>(domain: &Arc<Shared>, forwarded: Forwarded<Request, Reply>) {
    match domain.local.get::<Request, Reply>(&forwarded.route) {
        Ok(Some(route)) => {
            if let Err(not_adopted) = route.adopt(forwarded) {
                let (Forwarded { route, answer, .. }, error) = *not_adopted;
                answer.end_forwarded(&route, error);
            }
        }
        Ok(None) => go_elsewhere(domain, forwarded),
        Err(error) => forwarded.answer.end_forwarded(&forwarded.route, error),
    }
}

/// Calls another process, with the remaining time of the call.
fn go_elsewhere<Request: Message, Reply: Message>(domain: &Arc<Shared>, forwarded: Forwarded<Request, Reply>) {
    let Forwarded { route, request, answer } = forwarded;
    let options = CallerOptions { reach: Reach::OtherProcesses, ..CallerOptions::default() };
    let caller = match domain.caller::<Request, Reply>(&route, options) {
        Ok(caller) => caller.forwarding(answer.offer().hops()),
        Err(error) => {
            let (attempts, reason) = (1, error.to_string());
            return answer.end_forwarded(&route, CallError::NotBegun { route: route.clone(), attempts, reason });
        }
    };
    let (options, span) = (answer.offer().options(), answer.offer().span().cloned());
    // The forward belongs to the span of the call.
    let _entered = span.as_ref().map(tracing::Span::enter);
    // A call even for one-way requests: a send might block for a slot, on the thread of a task.
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

//! RabbitMQ: a private node, and AMQP 0-9-1 for a caller and a server.
//!
//! Requests are in one queue in memory (not durable, transient messages); replies use RabbitMQ's direct reply-to, which
//! needs no queue. With explicit acknowledgement, the server acknowledges after its answer, once for all requests that
//! arrived together. With automatic acknowledgement, the broker forgets a request once it is sent.

mod frames;
mod node;
mod session;

pub use node::{RabbitMqBroker, find_node};

use crate::peers::connection::silence;
use crate::peers::subject::{PeerCaller, PeerHandler, PeerServer, WaitMode};
use crate::peers::{PeerError, Result};
use frames::PROTOCOL;
use session::AmqpSession;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};

const REPLY_TO: &str = "amq.rabbitmq.reply-to";
/// Twice the number in flight.
const PREFETCH_COUNT: u16 = 256;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acknowledgement {
    /// Forgotten once the server has acknowledged it.
    Explicit,
    /// Forgotten once it is sent to the server.
    Automatic,
}

pub struct RabbitMqCaller {
    session: AmqpSession,
    route: String,
}

impl RabbitMqCaller {
    /// `route` is a queue.
    ///
    /// # Errors
    /// No broker there, or one that refuses.
    pub fn connect(address: SocketAddr, route: &str, waiting: WaitMode) -> Result<Self> {
        let mut session = AmqpSession::open(address, waiting)?;
        session.declare(route)?;
        session.consume(REPLY_TO, true)?;
        Ok(Self { session, route: route.to_owned() })
    }
}

impl PeerCaller for RabbitMqCaller {
    fn begin(&mut self, ticket: u64, request: &[u8]) -> Result<()> {
        self.session.publish(&self.route, Some((REPLY_TO, &ticket.to_string())), request)
    }

    fn receive(&mut self, take: &mut dyn FnMut(u64, &[u8])) -> Result<()> {
        self.session.flush()?;
        let (mut since, mut has_come) = (None, false);
        loop {
            while let Some(delivery) = self.session.next_delivery()? {
                let ticket = delivery.correlation_id.parse();
                let ticket = ticket
                    .map_err(|_| PeerError::protocol(PROTOCOL, "the number of a reply", delivery.correlation_id))?;
                take(ticket, delivery.body);
                has_come = true;
            }
            if has_come {
                return Ok(());
            }
            self.session.fill_since(&mut since, silence(PROTOCOL, "reply"))?;
        }
    }

    fn send(&mut self, message: &[u8]) -> Result<()> {
        self.session.publish(&self.route, None, message)
    }

    fn flush(&mut self) -> Result<()> {
        self.session.flush()
    }
}

pub struct RabbitMqServer {
    session: AmqpSession,
    acknowledgement: Acknowledgement,
}

impl RabbitMqServer {
    /// Consumes from `route`, a queue.
    ///
    /// # Errors
    /// No broker there, or one that refuses.
    pub fn connect(
        address: SocketAddr,
        route: &str,
        waiting: WaitMode,
        acknowledgement: Acknowledgement,
    ) -> Result<Self> {
        let mut session = AmqpSession::open(address, waiting)?;
        session.declare(route)?;
        if acknowledgement == Acknowledgement::Explicit {
            session.prefetch(PREFETCH_COUNT)?;
        }
        session.consume(route, acknowledgement == Acknowledgement::Automatic)?;
        Ok(Self { session, acknowledgement })
    }
}

impl PeerServer for RabbitMqServer {
    fn serve(&mut self, handler: &mut dyn PeerHandler, stop: &AtomicBool) -> Result<()> {
        let (mut answer, mut reply_to, mut ticket) = (Vec::new(), String::new(), String::new());
        while !stop.load(Ordering::Relaxed) {
            let mut last_tag = None;
            while let Some(delivery) = self.session.next_delivery()? {
                last_tag = Some(delivery.tag);
                if delivery.reply_to.is_empty() {
                    handler.receive(delivery.body);
                    continue;
                }
                answer.clear();
                if delivery.is_redelivered {
                    handler.call_again(delivery.body, &mut answer);
                } else {
                    handler.call(delivery.body, &mut answer);
                }
                reply_to.clear();
                reply_to.push_str(delivery.reply_to);
                ticket.clear();
                ticket.push_str(delivery.correlation_id);
                self.session.publish(&reply_to, Some(("", &ticket)), &answer)?;
            }
            if let Some(tag) = last_tag.filter(|_| self.acknowledgement == Acknowledgement::Explicit) {
                self.session.acknowledge_up_to(tag);
            }
            self.session.flush()?;
            self.session.fill()?;
        }
        Ok(())
    }
}

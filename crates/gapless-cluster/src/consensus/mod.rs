//! The core of a member: what is agreed on, without sockets, files, clocks or randomness.
//!
//! [`Consensus`] wraps raft-rs. What a member receives, appends and persists goes in; what it has to append, send and
//! release comes out as [`Effects`]. The agent that owns it does the rest, in this order:
//!
//! 1. [`Consensus::tick`] with the time.
//! 2. For each message that came: [`wire::decode`], for an append with its frames [`Consensus::verify_append`], then
//!    [`Consensus::step`], then [`Consensus::poll`] and what it asks for.
//! 3. On the leader: append what publishers sent, [`Consensus::propose`] it as one [`Batch`].
//! 4. [`Consensus::poll`]: cut, append frames and records, send messages, release.
//! 5. [`Consensus::persisted`] once the frames and records of a poll are as durable as the tier says.
//!
//! | module | what lives there |
//! |---|---|
//! | `ahead` | what need not wait for a poll |
//! | [`late`] | members that need more than the window has |
//! | `behind` | a member that may lack what it has acknowledged |
//! | [`chain`] | the chained hash over a stream's frames |
//! | [`types`] | members, batches, places |
//! | [`details`] | where members are reached, who joins |
//! | [`change`] | changes of members, and raft's form of them |
//! | [`wire`] | messages between members as bytes |
//! | [`record`] | what goes into the journal, as bytes |
//! | [`recovered`] | a member's state from its journal's records |
//! | [`storage`] | the entries that are kept in memory |
//! | [`history`] | whether logs are the same, and what members have acknowledged |
//! | [`membership_view`] | who is a member, for those who may know less |
//! | [`options`] | what a member is configured with |
//! | [`effects`] | what the core asks its agent to do |
//! | [`core`] | [`Consensus`] itself; `inbound` what comes in, `outbound` what goes out |

mod ahead;
mod behind;
pub mod chain;
pub mod change;
pub mod core;
pub mod details;
pub mod effects;
pub(crate) mod fields;
pub mod history;
mod inbound;
pub mod late;
pub mod membership_view;
pub mod options;
mod outbound;
pub mod record;
pub mod recovered;
pub mod status;
pub mod storage;
pub mod types;
pub mod wire;

pub use self::core::{Consensus, ConsensusError, ProposeError};
pub use behind::Behind;
pub use chain::Chain;
pub use change::{Change, ChangeStep, Transition};
pub use details::{Joining, MemberDetails};
pub use effects::{Effects, Fetch, Outgoing, Read, Record, RoleChange};
pub use history::{History, Parting};
pub use inbound::{AppendRefused, Refused};
pub use membership_view::MembershipView;
pub use options::ConsensusOptions;
pub use raft::eraftpb::Message;
pub use recovered::{Recovered, RecoveryError};
pub use status::{PeerStatus, Role, Status};
pub use types::{Batch, MemberId, Members, MembersError, Place};

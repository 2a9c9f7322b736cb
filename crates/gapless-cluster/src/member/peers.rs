//! Links after membership changes. A new cluster takes its members from the file; later the records count. The instance
//! of a member's first connection is kept for ever.

use super::member_files::Instances;
use crate::ClusterError;
use crate::config::{ClusterConfig, MemberConfig};
use crate::consensus::{MemberId, Members};
use crate::link::{Links, PeerOptions};

pub(super) struct Peers {
    file: Vec<MemberConfig>,
    instances: Instances,
    is_compared: bool,
}

impl Peers {
    pub fn new(config: &ClusterConfig, instances: Instances) -> Self {
        Self { file: config.members.clone(), instances, is_compared: false }
    }

    fn addresses(&self, member: MemberId, members: &Members) -> Vec<String> {
        let agreed = members.details_of(member).map(|details| details.addresses.clone()).unwrap_or_default();
        if !agreed.is_empty() {
            return agreed;
        }
        let described = self.file.iter().find(|each| each.id == member.get());
        described.map(|each| each.addresses.clone()).unwrap_or_default()
    }

    /// Member reached at one of `addresses`.
    pub fn owner_of<'a>(&self, addresses: &'a [String], members: &Members) -> Option<(MemberId, &'a str)> {
        members.all().into_iter().find_map(|member| {
            let taken = self.addresses(member, members);
            let found = addresses.iter().find(|address| taken.contains(address))?;
            Some((member, found.as_str()))
        })
    }

    /// Updates the links; returns the removed members. A connected peer with a higher number stays: this log may end
    /// before the change that added it.
    pub fn follow(&mut self, members: &Members, links: &mut Links) -> Result<Vec<u64>, ClusterError> {
        if members.is_empty() {
            return Ok(Vec::new());
        }
        self.warn_of_differences(members);
        let highest = members.highest_number();
        links.set_numbers_used(highest);
        let is_member = |peer: &u64| MemberId::new(*peer).is_some_and(|member| members.contains(member));
        let may_be_later = |peer: &u64| *peer > highest && links.is_connected(*peer);
        let gone: Vec<_> = links.peers().filter(|peer| !is_member(peer) && !may_be_later(peer)).collect();
        for peer in &gone {
            tracing::info!(member = peer, "a member was removed");
            links.remove_peer(*peer);
        }
        self.add_missing_links(members, links)?;
        Ok(gone)
    }

    /// Adds the missing links.
    pub fn add_missing_links(&mut self, members: &Members, links: &mut Links) -> Result<(), ClusterError> {
        for member in members.all() {
            let number = member.get();
            if number == links.identity().member || links.is_peer(number) {
                continue;
            }
            let peer = PeerOptions { member: number, addresses: self.addresses(member, members) };
            match links.add_peer(&peer) {
                Ok(()) => tracing::info!(member = number, addresses = ?peer.addresses, "a member is linked to"),
                Err(error) => tracing::warn!(member = number, %error, "a member cannot be linked to"),
            }
            self.note_instance(number, links)?;
        }
        self.apply_instances(links);
        Ok(())
    }

    /// Fixes the known instances.
    pub fn apply_instances(&self, links: &mut Links) {
        self.instances.iter().for_each(|(member, instance)| links.set_instance(member, instance));
    }

    /// Before any of the member's messages; not for a newcomer, which may not be a member.
    pub fn note_instance(&mut self, member: u64, links: &mut Links) -> Result<(), ClusterError> {
        if links.is_peer(member)
            && let Some(instance) = links.instance(member)
            && self.instances.get(member).is_none()
        {
            self.instances.store(member, instance)?;
            links.set_instance(member, instance);
        }
        Ok(())
    }

    fn warn_of_differences(&mut self, members: &Members) {
        if std::mem::replace(&mut self.is_compared, true) {
            return;
        }
        let described = |each: &MemberConfig| (each.id, each.addresses.clone());
        let mut in_file: Vec<_> = self.file.iter().map(described).collect();
        in_file.sort_unstable();
        let agreed: Vec<_> =
            members.all().into_iter().map(|member| (member.get(), self.addresses(member, members))).collect();
        if in_file != agreed {
            let text = |list: &[(u64, Vec<String>)]| {
                let each = list.iter().map(|(member, addresses)| format!("{member} at {}", addresses.join(" or ")));
                each.collect::<Vec<_>>().join(", ")
            };
            tracing::warn!(
                file = text(&in_file),
                journal = text(&agreed),
                "the file names other members than the journal; the journal counts"
            );
        }
    }
}

//! Later versions must add fields at the end of their block, groups and data after the existing ones: their number is
//! not on the wire, so an older reader would silently misread them anywhere else.

use super::error::SchemaError;
use super::model::{ElementNotes, FieldKind, FieldModel, Level};

/// The block exists since `base_version`.
pub(crate) fn check_fields(fields: &[FieldModel], base_version: u64) -> Result<(), SchemaError> {
    let mut newest = base_version;
    let mut newest_name = "";
    for field in fields {
        let since = field.notes.since.max(base_version);
        if since < newest && !field.has_offset && !matches!(field.kind, FieldKind::Constant(_)) {
            return Err(field.notes.location.error(
                format!(
                    "{:?}, of version {since}, stands behind {newest_name:?}, which has grown in version {newest}: \
                     readers of older versions look for it elsewhere",
                    field.name
                ),
                "what is new at the end of the block, or an offset that says where the field has always been",
            ));
        }
        let grown = grown_in(field).max(since);
        if grown > newest {
            (newest, newest_name) = (grown, &field.name);
        }
    }
    Ok(())
}

/// Last version in which the field became longer.
fn grown_in(field: &FieldModel) -> u64 {
    match &field.kind {
        FieldKind::Composite(level) => level.versions().last().copied().unwrap_or(0).max(field.notes.since),
        _ => field.notes.since,
    }
}

pub(crate) fn check_members(level: &Level, is_entry: bool) -> Result<(), SchemaError> {
    let groups = level.groups.iter().map(|group| (&group.name, &group.level.notes));
    let members: Vec<(&String, &ElementNotes)> =
        groups.chain(level.data.iter().map(|data| (&data.name, &data.notes))).collect();
    let (mut newest, mut newest_name) = (level.base_version, "");
    for (name, notes) in members {
        let since = notes.since.max(level.base_version);
        if is_entry && since > level.base_version {
            return Err(notes.location.error(
                format!(
                    "{name:?} came to the entries of {} in version {since}: readers of older versions take it for the \
                     next entry",
                    level.path
                ),
                "a group or data behind all others of the message, or a new message",
            ));
        }
        if since < newest {
            return Err(notes.location.error(
                format!(
                    "{name:?}, of version {since}, stands behind {newest_name:?}, of version {newest}: readers of older \
                     versions take the one for the other"
                ),
                "groups and data in the order of their versions, or a new message",
            ));
        }
        if since > newest {
            (newest, newest_name) = (since, name);
        }
    }
    Ok(())
}

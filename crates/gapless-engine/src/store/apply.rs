//! Applies changes of other replicas: every byte is checked, and either all changes are applied or none.

use super::Store;
use super::changes::{BEGIN, ChangeError, ChangeErrorDetails, ChangesReader, HEAD_LENGTH, VERSION};
use super::error::StoreError;

impl Store {
    /// `changes`: bytes that [`super::Transaction::commit`] appended on another replica.
    ///
    /// # Errors
    /// [`StoreError::Changes`] with the place of the defect, or [`StoreError::Limit`]; the store is unchanged then.
    pub fn apply(&mut self, changes: &[u8]) -> Result<(), StoreError> {
        self.tracker.begin();
        let mut place = ChangeLocation::default();
        let applied = self.apply_whole(changes, &mut place).map_err(|flaw| self.describe(flaw, &place));
        let checked = applied.and_then(|()| {
            super::tracker::check_changes(changes.len(), self.tracker.limits.changes_length_max as usize)
        });
        self.end_apply(checked.and_then(|()| self.tracker.limits.check_totals(&self.tracker.usage)))
    }

    pub(super) fn apply_piece(&mut self, operations: &[u8]) -> Result<(), StoreError> {
        self.tracker.begin();
        let mut place = ChangeLocation::default();
        let mut reader = ChangesReader::new(operations);
        let mut apply = || {
            while !reader.is_at_end() {
                self.apply_next(&mut reader, &mut place, true)?;
            }
            Ok(())
        };
        let applied = apply().map_err(|flaw| self.describe(flaw, &place));
        self.end_apply(applied.and_then(|()| self.tracker.limits.check_totals(&self.tracker.usage)))
    }

    fn end_apply(&mut self, applied: Result<(), StoreError>) -> Result<(), StoreError> {
        match applied {
            Ok(()) => self.end_transaction(),
            Err(_) => self.undo(),
        }
        applied
    }

    fn apply_whole(&mut self, changes: &[u8], place: &mut ChangeLocation) -> Result<(), ChangeError> {
        let mut reader = ChangesReader::new(changes);
        let version = reader.byte("the version of the changes")?;
        if version != VERSION {
            let reason =
                format!("they are of version {version}, {VERSION} is known here: run the program that made them");
            return Err(ChangeError::new(0, reason));
        }
        let operations = u32::from_le_bytes(reader.array("the number of operations")?);
        debug_assert_eq!(reader.position(), HEAD_LENGTH);
        for _ in 0..operations {
            self.apply_next(&mut reader, place, false)?;
        }
        *place = ChangeLocation::default();
        if reader.is_at_end() {
            return Ok(());
        }
        Err(ChangeError::new(reader.position(), format!("there is more behind its {operations} operations")))
    }

    fn apply_next(
        &mut self,
        reader: &mut ChangesReader<'_>,
        place: &mut ChangeLocation,
        is_snapshot: bool,
    ) -> Result<(), ChangeError> {
        *place = ChangeLocation::default();
        let at = reader.position();
        let operation = reader.byte("an operation")?;
        let id = reader.varint_u16("the number of a collection")?;
        place.id = Some(id);
        let position = self.positions.get(usize::from(id)).and_then(|place| place.checked_sub(1));
        let Some(position) = position else {
            return Err(ChangeError::new(at, "there is no such collection: run a newer program, or declare it"));
        };
        place.position = Some(usize::from(position));
        if operation == BEGIN && !is_snapshot {
            return Err(ChangeError::new(at, "a queue begins in snapshots only"));
        }
        self.collections[usize::from(position)].apply(operation, reader, &mut self.tracker)
    }

    #[cold]
    fn describe(&self, flaw: ChangeError, place: &ChangeLocation) -> StoreError {
        let mut text = match (place.position, place.id) {
            (Some(position), Some(id)) => format!("collection {} ({id})", self.collections[position].identity().name),
            (_, Some(id)) => format!("collection {id}"),
            _ => "outside of any collection".to_owned(),
        };
        let ChangeErrorDetails { offset, key, reason } = *flaw.0;
        if let Some(key) = key {
            text = format!("{text}, key {key}");
        }
        StoreError::Changes { offset, place: text, reason }
    }
}

#[derive(Default)]
struct ChangeLocation {
    id: Option<u16>,
    position: Option<usize>,
}

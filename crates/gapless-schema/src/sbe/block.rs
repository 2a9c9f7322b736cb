//! Offsets and lengths are constants of the generated code, and a field's bounds are checked at compile time, so none
//! of these functions can fail or panic.

/// `N` bytes at offset `O` of a block of `B` bytes.
#[inline(always)]
#[must_use]
pub const fn field<const O: usize, const N: usize, const B: usize>(block: &[u8; B]) -> &[u8; N] {
    const { assert!(O + N <= B, "the field lies outside of its block") };
    match block.split_at(O).1.first_chunk() {
        Some(field) => field,
        None => unreachable!(),
    }
}

#[inline(always)]
pub const fn field_mut<const O: usize, const N: usize, const B: usize>(block: &mut [u8; B]) -> &mut [u8; N] {
    const { assert!(O + N <= B, "the field lies outside of its block") };
    match block.split_at_mut(O).1.first_chunk_mut() {
        Some(field) => field,
        None => unreachable!(),
    }
}

/// `None` if the writer's version is older, or the block ends before the field.
#[inline(always)]
#[must_use]
pub fn late_field<const N: usize>(block: &[u8], version: u64, since: u64, offset: usize) -> Option<&[u8; N]> {
    if version < since { None } else { block.get(offset..)?.first_chunk() }
}

/// Empty if the block ends before `offset`.
#[inline(always)]
#[must_use]
pub fn from_offset(block: &[u8], offset: usize) -> &[u8] {
    block.get(offset..).unwrap_or(&[])
}

/// Writes `bytes` at `offset` of `block`, for blocks with their nulls in place.
#[must_use]
pub const fn with<const B: usize, const N: usize>(mut block: [u8; B], offset: usize, bytes: [u8; N]) -> [u8; B] {
    let mut index = 0;
    while index < N {
        block[offset + index] = bytes[index];
        index += 1;
    }
    block
}

#[must_use]
pub const fn with_repeated<const B: usize, const N: usize>(
    mut block: [u8; B],
    offset: usize,
    bytes: [u8; N],
    count: usize,
) -> [u8; B] {
    let mut index = 0;
    while index < count {
        block = with(block, offset + index * N, bytes);
        index += 1;
    }
    block
}

//! The face of Gapless: what an application imports

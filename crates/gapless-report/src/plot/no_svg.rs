//! In the place of `svg` where the feature `plots` is not built: nothing is drawn.

use super::{Curves, Plot};
use crate::{ReportError, Result};

pub(super) fn draw(_plot: &Plot) -> Result<String> {
    Err(ReportError::Feature("plots"))
}

pub(super) fn draw_curves(_curves: &Curves) -> Result<String> {
    Err(ReportError::Feature("plots"))
}

#[cfg(test)]
mod tests {
    use super::super::check;

    #[test]
    fn a_plot_is_refused_before_the_run() {
        let error = check().unwrap_err();
        assert_eq!(error.to_string(), "this build has no plots: enable the feature `plots`");
        assert!(error.is_about_options());
    }
}

//! The duties of every backend: one list of checks, which the tests of each backend run.
//!
//! A store may already contain other objects (a shared server), so each check uses its own IDs and compares
//! transactions with each other, never with fixed numbers. A check panics if the store is wrong.

#![expect(clippy::unwrap_used, reason = "a check fails by panicking")]

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use crate::OwnedStore;

mod forgetting;
pub mod given;
mod order;
mod owning;
mod reading;
mod searching;
mod viewing;
mod writing;

/// A running check.
pub type Running = Pin<Box<dyn Future<Output = ()> + Send>>;

/// One check of the suite.
#[derive(Clone, Copy)]
pub struct Check {
    /// The statement that the check proves, as a sentence in snake case.
    pub name: &'static str,
    /// Runs it against a store.
    pub run: fn(Arc<dyn OwnedStore>) -> Running,
}

macro_rules! checks {
    ($($module:ident :: $name:ident),* $(,)?) => {
        &[$(Check { name: stringify!($name), run: |store| Box::pin($module::$name(store)) }),*]
    };
}

/// All checks.
pub const CHECKS: &[Check] = checks![
    writing::a_document_comes_back_as_it_was_written,
    writing::every_kind_of_document_comes_back,
    writing::equal_content_is_written_once,
    writing::a_then_b_then_a_makes_three_versions,
    writing::a_changed_source_hash_makes_a_version,
    writing::transactions_rise_strictly,
    writing::ten_writes_in_one_moment_make_ten_versions,
    writing::a_transaction_is_applied_whole_or_not_at_all,
    writing::a_failed_expectation_is_a_conflict,
    writing::an_expected_absence_holds_once,
    writing::an_envelope_never_changes,
    writing::the_same_object_twice_in_one_transaction_keeps_the_order,
    writing::an_empty_transaction_writes_nothing,
    writing::concurrent_writers_lose_nothing,
    writing::patches_give_the_whole_document,
    writing::patches_may_follow_a_write_in_the_same_transaction,
    writing::refuses_patches_that_do_not_fit,
    writing::a_patch_of_an_unknown_object_is_refused,
    writing::a_whole_write_after_patches_is_compared_with_the_result,
    writing::deep_patches_are_checked,
    writing::a_deletion_is_a_version,
    writing::a_delayed_write_is_visible_at_once,
    reading::an_unknown_object_is_none,
    reading::as_of_a_transaction,
    reading::as_of_a_valid_time,
    reading::a_back_dated_version_does_not_become_the_latest,
    order::a_write_replaces_a_version_dated_ahead,
    reading::equal_content_is_compared_at_its_valid_time,
    reading::patched_documents_are_read_as_of_any_point,
    reading::a_patch_holds_from_its_valid_time_on,
    reading::a_history_in_pages_is_the_whole_history,
    order::a_transaction_names_its_version,
    order::a_journal_keeps_its_sense_when_an_older_version_arrives_later,
    reading::many_objects_come_in_the_order_asked_for,
    reading::outlines_have_no_content,
    reading::outlines_of_patched_documents_have_the_scalar_fields,
    reading::the_journal_has_every_write,
    reading::queries_filter_by_type_and_source,
    reading::changes_since_a_transaction,
    reading::a_write_is_readable_at_once,
    searching::a_search_finds_words_with_their_line,
    searching::any_text_is_a_valid_search,
    reading::local_values_keep_the_first_default,
    reading::an_intact_store_has_no_damage,
    owning::an_erased_object_keeps_its_times_and_says_why,
    owning::an_erased_text_is_gone_everywhere_and_the_rest_stays,
    owning::an_erased_text_is_not_stored_again,
    owning::short_messages_and_arguments_stay_forgotten,
    owning::words_of_others_are_not_forgotten_with_a_session,
    forgetting::an_imported_version_keeps_its_mark,
    forgetting::a_text_of_any_length_stays_forgotten_in_any_place,
    forgetting::a_text_stays_forgotten_inside_of_new_ones,
    owning::a_session_is_erased_with_the_objects_only_it_has_seen,
    owning::refuses_an_impossible_erasure_and_erases_nothing,
    owning::young_sessions_stay_and_a_removal_needs_a_condition,
    viewing::a_view_shows_what_is_written_after_it_was_opened,
    viewing::a_view_refuses_writes_and_is_closed_by_itself,
    reading::a_closed_store_says_so,
];

/// Runs all checks, each against a store that the factory makes, and reports the name of each before it runs.
pub async fn run_all<F: Future<Output = Arc<dyn OwnedStore>>>(
    mut factory: impl FnMut() -> F,
    mut report: impl FnMut(&'static str),
) {
    for check in CHECKS {
        report(check.name);
        let store = factory().await;
        (check.run)(Arc::clone(&store)).await;
        store.close().await.unwrap();
    }
}

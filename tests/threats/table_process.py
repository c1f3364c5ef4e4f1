"""The threats to the process: git, the token, the runner, the network, the supply of code; each with its tests."""

from __future__ import annotations

from tests.threats.threat import Threat

GIT = "tests/threats/test_git_bombs.py::"
LOGS = "tests/threats/test_logs.py::"
PAYLOADS = "tests/threats/test_payloads.py::"
PRIVATE = "tests/threats/test_private.py::"
PROCESS = "tests/threats/test_process.py::"
SUPPLY = "tests/threats/test_supply.py::"
TOKEN = "tests/threats/test_token.py::"
INDEX = "tests/index/test_whoosh_attacks.py::"
COMMANDS = "tests/acceptance/test_commands.py::"
REPLIES = "tests/pipeline/test_replies.py::"
CHECKOUT = "tests/git/test_checkout_git.py::"
BRANCH = "tests/memory/test_branch_store.py::"
OWN_GIT = "tests/git/test_repository.py::"
BAD = "tests/acceptance/test_bad_input.py::"
RECEIVE = "tests/server/test_webhook.py::"
WEB = "tests/server/test_web.py::"
CROWDS = "tests/server/test_slow_senders.py::"
TENANTS = "tests/server/test_changes_during_a_run.py::"
SCOPE = "tests/organisation/test_scope.py::"
STORY = "tests/server/test_organisation_story.py::"
LOCAL = "tests/local_cache/test_local_memory.py::"
CHECKED_OUT = "tests/local_cache/test_local_memory_settings.py::"
FOLDER = "tests/memory/test_folder_store.py::"
LANCE = "tests/organisation/test_lance.py::"
STANDING = "tests/acceptance/test_comment_updates.py::"

ROWS = (
    Threat(
        1,
        "A title or comment runs as a script in a workflow",
        "The Action reads the event's file; no step in the workflows or pages expands text that people write.",
        (
            f"{SUPPLY}test_no_script_expands_anything_that_somebody_else_may_choose",
            f"{SUPPLY}test_the_action_takes_the_event_only_from_its_file",
            f"{SUPPLY}test_the_workflows_of_the_pages_are_written_where_the_checkers_look",
        ),
    ),
    Threat(
        2,
        "An index that runs code when it is opened",
        "Nothing is unpickled: the project's own reader reads the index within bounds, and rebuilds it when in doubt.",
        (
            f"{INDEX}test_a_poisoned_index_runs_code_in_plain_whoosh_and_is_refused_here",
            f"{INDEX}test_parts_of_a_poisoned_index_inside_an_honest_one_run_nothing",
            f"{INDEX}test_poisoned_stored_fields_are_never_read",
            f"{INDEX}test_an_honest_index_is_read_without_loading_a_single_name_from_a_pickle",
            f"{INDEX}test_a_bomb_is_not_unpacked",
            f"{INDEX}test_a_file_of_terms_with_absurd_counts_is_refused",
            "tests/threats/test_index_memory.py::test_absurd_counts_in_an_index_take_no_memory",
        ),
    ),
    Threat(
        3,
        "Somebody with write access changes the memory branch",
        "Index files have SHA-256 sums; everything else is parsed as untrusted; damage is reported and repaired.",
        (
            f"{INDEX}test_damage_of_any_kind_is_refused_or_does_no_harm",
            "tests/memory/test_manifest.py::test_every_difference_between_the_folder_and_the_manifest_is_found",
            "tests/memory/test_records.py::test_a_damaged_record_is_refused_or_read_as_another_record",
            f"{BAD}test_a_damaged_branch_is_repaired_and_the_event_answered",
            f"{GIT}test_a_memory_full_of_garbage_opens_and_reports_it",
        ),
    ),
    Threat(
        6,
        "Settings, templates or memory that point outside the repository",
        "Read from git's tree, not from disk; links and submodules are refused, names and sizes checked first.",
        (
            f"{GIT}test_a_link_on_the_branch_is_never_followed",
            f"{GIT}test_a_link_in_place_of_settings_or_a_template_is_never_followed",
            f"{GIT}test_a_bad_file_name_on_the_branch_stays_in_its_folder",
            f"{GIT}test_huge_settings_and_templates_are_refused_by_their_size",
            "tests/git/test_remote_files.py::test_a_symlink_or_submodule_on_the_way_is_refused",
            "tests/memory/test_store_contract.py::test_a_path_that_leaves_the_store_is_refused",
            f"{LOGS}test_no_file_is_written_through_a_link",
        ),
    ),
    Threat(
        17,
        "A log line that the runner treats as a command",
        "Every message becomes one line without `::` and `##[`, including those of git, GitHub and libraries.",
        (
            f"{LOGS}test_five_thousand_hostile_texts_in_every_line_make_no_command",
            f"{LOGS}test_messages_of_git_and_github_make_no_command",
            f"{LOGS}test_log_messages_of_libraries_make_no_command",
            f"{PROCESS}test_the_log_of_the_story_holds_no_command_of_a_stranger",
        ),
    ),
    Threat(
        18,
        "A text that sets outputs or variables of the job",
        "The seven outputs use a delimiter of 128 random bits; GITHUB_ENV, GITHUB_PATH and GITHUB_STATE get nothing.",
        (
            f"{LOGS}test_outputs_hold_our_names_and_nothing_else",
            f"{LOGS}test_the_delimiter_of_outputs_cannot_be_guessed",
            f"{PROCESS}test_nothing_is_written_to_the_runners_own_files",
            f"{PROCESS}test_the_outputs_of_the_story_are_ours",
        ),
    ),
    Threat(
        19,
        "The token in a log, an argument, an address, a file or an error",
        "Git gets it through GIT_CONFIG_* in its environment, the API in a header; it is redacted in answers.",
        (
            f"{PROCESS}test_the_token_is_only_in_the_environment_of_git_and_in_nothing_left_behind",
            f"{TOKEN}test_no_token_leaks_when_the_environment_is_wrong",
            f"{TOKEN}test_no_token_leaks_when_the_api_fails",
            f"{TOKEN}test_no_token_leaks_when_git_fails",
            f"{TOKEN}test_no_token_leaks_when_the_api_repeats_it",
            f"{TOKEN}test_no_token_leaks_when_the_git_server_repeats_it",
            f"{TOKEN}test_no_token_leaks_with_bad_settings_and_templates",
            f"{TOKEN}test_no_token_leaks_with_all_debugging_switched_on",
            f"{OWN_GIT}test_secrets_are_redacted_from_a_message_of_git",
        ),
    ),
    Threat(
        20,
        "A tag or image that is moved to different code",
        "Actions are pinned to commits; a release names its image by digest, with provenance and SBOM.",
        (
            f"{SUPPLY}test_third_party_actions_are_pinned_to_a_commit",
            f"{SUPPLY}test_third_party_actions_in_the_pages_are_pinned_too",
            f"{SUPPLY}test_a_release_names_the_image_by_its_digest",
            f"{SUPPLY}test_the_image_is_based_on_the_official_python_image_and_copies_only_named_files",
        ),
    ),
    Threat(
        21,
        "A cache filled by another run",
        "Neither runs nor releases use a cache; no workflow runs a stranger's commit with rights.",
        (
            f"{SUPPLY}test_no_workflow_uses_a_cache_that_another_run_could_fill",
            f"{SUPPLY}test_no_workflow_runs_a_strangers_commit_with_rights",
        ),
    ),
    Threat(
        22,
        "A token that may do more than is needed",
        "`permissions: {}` at the top, two write permissions for the job; docs/security.md lists all calls.",
        (
            f"{PROCESS}test_a_token_with_the_documented_permissions_is_enough_and_no_other_call_is_made",
            f"{PROCESS}test_the_documents_list_every_call",
            f"{SUPPLY}test_permissions_are_none_at_the_top_and_named_for_each_job",
        ),
    ),
    Threat(
        23,
        "A command without permission, or edited into an old comment",
        "The bot asks GitHub for the permission at that moment; edited comments, quotes and code do not count.",
        (
            f"{COMMANDS}test_an_outsider_cannot_switch_anything_off",
            f"{COMMANDS}test_a_command_in_a_quotation_in_code_or_in_a_sentence_is_ignored",
            f"{REPLIES}test_permission_counts_and_not_the_association_of_a_comment",
            f"{REPLIES}test_the_permission_at_the_time_of_reading_counts",
            f"{REPLIES}test_an_edited_comment_is_not_obeyed",
            f"{REPLIES}test_an_edit_of_an_answered_comment_changes_nothing",
        ),
    ),
    Threat(
        24,
        "An account that poses as the bot, or as somebody with rights",
        "Author and marker together identify the bot; rights are those of the account that GitHub names then.",
        (
            f"{REPLIES}test_a_comment_with_our_marker_by_somebody_else_is_not_ours",
            f"{REPLIES}test_commands_in_our_own_comments_are_never_obeyed",
            f"{REPLIES}test_a_deleted_account_is_not_mistaken_for_a_deleted_author",
            "tests/github/test_threads.py::test_a_comment_is_ours_by_its_author_and_its_first_line",
            "tests/github/test_discussions.py::test_a_person_with_the_name_of_our_app_is_not_us",
            "tests/github/test_history.py::test_a_person_with_the_name_of_our_app_is_not_us",
            "tests/threats/test_accounts.py::test_a_renamed_account_keeps_its_rights_and_leaves_none_behind",
        ),
    ),
    Threat(
        26,
        "A forged, repeated or weakly signed webhook",
        "Only SHA-256 over the raw bytes counts, compared in constant time; a known id is not processed again.",
        (
            f"{RECEIVE}test_each_refusal_has_its_status",
            f"{RECEIVE}test_no_body_is_parsed_before_its_signature_is_verified",
            f"{RECEIVE}test_any_flipped_bit_in_the_body_invalidates_the_signature",
            f"{RECEIVE}test_one_wrong_digit_makes_a_signature_invalid",
            f"{RECEIVE}test_the_current_and_the_previous_secret_are_valid_and_no_other",
            f"{RECEIVE}test_checking_a_signature_takes_equally_long_for_each_secret",
            f"{WEB}test_a_delivery_is_acknowledged_once_stored_and_a_repetition_is_recognised",
        ),
    ),
    Threat(
        27,
        "A flood of webhooks",
        "Large bodies are refused unread; connections, bodies, time and queue are bounded; the slowest are dropped.",
        (
            f"{WEB}test_a_body_of_26_mb_is_refused_without_being_read_into_memory",
            f"{WEB}test_two_hundred_slow_senders_are_disconnected_and_do_not_delay_others",
            f"{CROWDS}test_a_declared_length_reserves_no_memory",
            f"{CROWDS}test_bodies_that_lack_only_their_last_byte_make_room_for_others",
            f"{CROWDS}test_senders_of_a_byte_a_second_delay_nobody",
            f"{CROWDS}test_more_connections_than_slots_keep_nobody_out",
            f"{WEB}test_a_body_that_arrives_too_slowly_is_refused",
        ),
    ),
    Threat(
        28,
        "Names, configuration, hooks, submodules, links, filters and bombs for git",
        "Argument lists, checked names, a separate bare repository with its own configuration only, `fsck`, bounds.",
        (
            f"{OWN_GIT}test_an_invalid_branch_name_or_one_like_an_option_is_refused",
            f"{OWN_GIT}test_the_users_own_git_configuration_is_ignored",
            f"{TOKEN}test_a_hostile_environment_does_not_change_what_git_does",
            f"{GIT}test_submodules_filters_and_attributes_of_the_branch_run_nothing",
            f"{GIT}test_a_broken_object_is_refused_as_it_arrives",
            f"{GIT}test_a_mode_that_git_never_writes_is_refused_or_read_as_git_reads_it",
            f"{GIT}test_a_memory_branch_that_expands_to_a_billion_files_is_refused",
            f"{GIT}test_a_default_branch_that_expands_costs_no_more_than_reading_the_settings",
            f"{GIT}test_a_huge_file_on_the_branch_is_refused_by_its_size",
            f"{GIT}test_a_commit_with_a_huge_message_is_refused",
            f"{BRANCH}test_odd_entries_on_the_branch_are_refused",
        ),
    ),
    Threat(
        29,
        "An address in a text or setting that makes the bot open it",
        "Addresses come only from GITHUB_API_URL and GITHUB_SERVER_URL (the App: PRECEDENT_…); no link is followed.",
        (
            f"{PROCESS}test_the_only_hosts_are_the_api_and_the_git_server",
            f"{OWN_GIT}test_other_addresses_are_refused_without_repeating_a_password",
            "tests/threats/test_accounts.py::test_no_setting_names_a_host",
        ),
    ),
    Threat(
        30,
        "Private or deleted text that stays, or appears elsewhere",
        "The Action reads only its own repository (for a server, see 37). The next run removes edited, deleted or "
        "moved text; a squash removes its history.",
        (
            "tests/threats/test_removed_secrets.py::test_edited_or_deleted_text_is_gone_and_deleting_the_branch_erases_history",
            f"{PRIVATE}test_a_deleted_issue_leaves_the_tip_and_with_the_next_squash_the_history",
            f"{PRIVATE}test_a_transferred_issue_is_gone_from_memory",
            f"{PRIVATE}test_an_issue_of_another_repository_is_never_fetched_stored_or_shown",
            "tests/memory/test_memory.py::test_no_text_of_a_deleted_thread_stays",
            "tests/github/test_threads.py::test_references_from_other_repositories_are_left_out",
        ),
    ),
    Threat(
        33,
        "Escape from the container through the runner's Docker socket",
        "Only git is started, only two hosts are contacted, and git gets none of the runner's own variables.",
        (
            f"{PROCESS}test_git_is_the_only_program_that_is_started",
            f"{PROCESS}test_git_starts_only_parts_of_itself",
            f"{PROCESS}test_the_only_hosts_are_the_api_and_the_git_server",
            f"{PROCESS}test_child_processes_get_none_of_the_runners_secrets",
            f"{PROCESS}test_files_are_written_only_where_a_run_may_write",
        ),
    ),
    Threat(
        34,
        "A substituted dependency",
        "Every package is locked to a version and SHA-256, installed with `--require-hashes --no-deps --only-binary`.",
        (
            f"{SUPPLY}test_the_image_is_built_from_hashes",
            f"{SUPPLY}test_every_line_of_a_lock_has_a_version_and_a_hash",
            "tests/container/test_image.py::test_the_image_has_git_but_neither_a_compiler_nor_an_installer",
        ),
    ),
    Threat(
        35,
        "Two repositories that are confused",
        "Each memory is in its repository, and a run's token is for that one; the server uses GitHub's numeric ids.",
        (
            f"{PRIVATE}test_two_repositories_on_one_server_know_nothing_of_each_other",
            f"{TENANTS}test_repositories_of_the_same_name_in_two_accounts_share_nothing",
            f"{TENANTS}test_a_renamed_repository_is_answered_once_and_its_namesake_never",
            "tests/github/test_client.py::test_an_issue_of_a_renamed_repository_is_not_gone",
            "tests/github/test_client.py::test_a_transferred_issue_is_gone_and_its_new_place_is_known",
        ),
    ),
    Threat(
        36,
        "JSON bombs: numbers, depth, size, broken characters",
        "Input is bounded before parsing; numbers are below 2^53 or dropped; lone surrogates and NUL are replaced; an "
        "error is one line.",
        (
            f"{PAYLOADS}test_a_payload_of_bombs_is_parsed_or_ends_with_a_one_line_error",
            f"{PAYLOADS}test_a_payload_of_25_megabytes_is_read_and_one_byte_more_is_refused",
            f"{PAYLOADS}test_a_record_of_bombs_is_decoded_or_reported_as_corrupt",
            f"{PAYLOADS}test_a_manifest_of_bombs_is_decoded_or_reported_as_corrupt",
            f"{PAYLOADS}test_api_answers_of_bombs_are_parsed_or_end_with_a_one_line_error",
            f"{PAYLOADS}test_an_api_answer_that_unpacks_to_a_gigabyte_is_rejected",
            f"{PAYLOADS}test_a_run_against_an_api_of_bombs_ends_without_a_traceback",
            f"{BAD}test_nul_and_lone_surrogates_do_no_harm",
        ),
    ),
    Threat(
        37,
        "An issue of another repository is shown to people who may not read it",
        "Only what every reader may read is shown; each answer checks with GitHub; what became private is removed.",
        (
            f"{SCOPE}test_a_repository_that_all_readers_can_read_is_visible",
            f"{SCOPE}test_a_private_repository_is_visible_if_both_share_with_each_other",
            f"{SCOPE}test_neither_itself_nor_deleted_ones_nor_other_installations_are_visible",
            "tests/server/test_organisation_worlds.py::test_nothing_leaks_in_many_random_organisations",
            f"{STORY}test_a_thread_that_becomes_private_leaves_the_comment",
            f"{STORY}test_a_private_thread_is_not_shown_even_if_its_event_was_lost",
            "tests/server/test_organisation_search.py::test_an_answer_that_finds_a_change_has_other_comments_checked",
            "tests/server/test_organisation_search.py::test_a_thread_that_its_repository_forgot_is_not_shown_although_github_has_it",
            f"{STORY}test_a_repository_transferred_to_another_account_is_not_shown_even_if_public",
            "tests/github/test_foreign_thread.py::test_a_thread_that_moved_to_another_repository_is_not_read",
        ),
    ),
    Threat(
        38,
        "A command or tool is used in a stranger's checkout",
        "No program named in its git settings is run, no link is followed, and no address can hide an option.",
        (
            f"{CHECKOUT}test_no_command_runs_programs_named_by_the_checkout",
            f"{CHECKOUT}test_no_command_that_looks_for_the_remote_runs_them",
            f"{CHECKOUT}test_no_tool_runs_programs_named_by_the_checkout",
            f"{CHECKOUT}test_fetching_from_a_remote_inside_the_checkout_runs_none_of_its_programs",
            f"{CHECKOUT}test_git_is_refused_if_its_settings_are_too_long_to_check",
            f"{CHECKOUT}test_a_bare_repository_inside_the_checkout_is_ignored",
            f"{CHECKOUT}test_a_pipe_without_a_writer_is_not_waited_for",
            f"{LOCAL}test_an_invalid_address_is_refused",
            f"{LOCAL}test_an_address_with_an_option_in_it_is_refused",
            f"{LOCAL}test_an_address_for_a_remote_helper_of_git_is_refused",
            f"{CHECKED_OUT}test_nothing_is_read_through_a_link_of_the_checkout",
            f"{CHECKED_OUT}test_no_template_is_read_through_a_link_of_the_checkout",
            "tests/cli/test_init.py::test_nothing_is_written_through_a_link",
            "tests/cli/test_skill.py::test_no_link_is_followed",
            "tests/sources/test_session.py::test_symlinks_pipes_and_undecodable_names_are_left_out",
            "tests/cli/test_sessions.py::test_committed_transcripts_are_linked_to_nothing",
            "tests/cli/test_doctor.py::test_a_token_is_never_sent_to_a_server_named_only_by_the_checkout",
            "tests/cli/test_search.py::test_control_characters_by_strangers_never_reach_a_terminal",
        ),
    ),
    Threat(
        39,
        "A store, a cache or an organisation's index with damaged or hostile contents",
        "Read within bounds and never through a link; damaged parts are skipped or rebuilt, and the rest still works.",
        (
            f"{FOLDER}test_nothing_is_read_or_written_through_a_symlinked_folder",
            f"{FOLDER}test_a_device_or_pipe_is_refused_without_waiting_for_it",
            f"{FOLDER}test_a_journal_that_came_with_a_checkout_is_refused",
            f"{FOLDER}test_a_path_that_leads_elsewhere_is_refused",
            f"{FOLDER}test_an_oversized_file_is_refused_without_reading_it",
            f"{LANCE}test_damage_is_harmless_or_reported_and_a_rebuild_repairs_it",
            f"{LANCE}test_a_panic_of_the_engine_is_reported_and_a_rebuild_repairs_it",
            f"{LANCE}test_a_damaged_row_is_skipped",
            f"{LANCE}test_terms_and_ids_are_never_read_as_a_query",
            f"{LANCE}test_tenants_never_share_a_table",
            f"{LANCE}test_only_the_owner_may_read_a_new_folder",
            "tests/cli/test_org.py::test_links_are_not_followed_in_the_folder",
            f"{LOCAL}test_a_damaged_cache_is_recreated",
            "tests/server/test_database_upgrade.py::test_the_database_of_a_newer_release_is_left_alone",
        ),
    ),
    Threat(
        40,
        "A comment still quotes what its author took back",
        "The next run removes it from every comment that shows it, even one that a person edited.",
        (
            f"{STANDING}test_words_that_an_author_edits_away_disappear_from_our_comment",
            f"{STANDING}test_a_comment_that_its_author_deletes_disappears_from_our_comment",
            f"{STANDING}test_deleted_words_that_only_the_conversation_showed_disappear_too",
            f"{STANDING}test_a_deleted_issue_is_no_longer_shown",
            f"{STANDING}test_a_transferred_issue_is_no_longer_shown",
            f"{STANDING}test_our_comment_is_withdrawn_if_it_quotes_deleted_words_even_if_a_person_edited_it",
            f"{STANDING}test_a_hidden_issue_is_not_shown_until_it_is_visible_again",
            "tests/acceptance/test_forget.py::test_our_comment_is_deleted_even_if_a_person_edited_it",
            f"{LOCAL}test_a_forgotten_thread_leaves_this_machine_with_the_next_fetch",
            "tests/server/test_organisation_indexer.py::test_a_quotation_disappears_when_its_author_edits_or_deletes_it",
            f"{STORY}test_a_deleted_issue_leaves_the_comment_and_is_not_shown_again",
            f"{STORY}test_a_forgotten_thread_leaves_the_comment",
        ),
    ),
)

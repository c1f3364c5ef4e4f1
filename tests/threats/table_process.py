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
CROWDS = "tests/server/test_crowds.py::"
TENANTS = "tests/server/test_tenants.py::"
SCOPE = "tests/organisation/test_scope.py::"
STORY = "tests/server/test_organisation_story.py::"
LOCAL = "tests/local_cache/test_local_memory.py::"
CHECKED_OUT = "tests/local_cache/test_local_memory_settings.py::"
FOLDER = "tests/memory/test_folder_store.py::"
LANCE = "tests/organisation/test_lance.py::"
STANDING = "tests/acceptance/test_standing.py::"

ROWS = (
    Threat(
        1,
        "A title or comment runs as a script in a workflow",
        "The Action reads the event's file; no step in the workflows or pages expands text that people write.",
        (
            f"{SUPPLY}test_no_script_expands_anything_that_somebody_else_may_choose",
            f"{SUPPLY}test_the_action_takes_nothing_of_the_event_but_its_file",
            f"{SUPPLY}test_the_workflows_of_the_pages_are_written_where_a_checker_looks_for_them",
        ),
    ),
    Threat(
        2,
        "An index that runs code when it is opened",
        "Nothing is unpickled: the project's own reader reads the index within bounds, and rebuilds it when in doubt.",
        (
            f"{INDEX}test_a_poisoned_index_runs_with_plain_whoosh_and_is_refused_here",
            f"{INDEX}test_parts_of_a_poisoned_index_inside_an_honest_one_run_nothing",
            f"{INDEX}test_poisoned_stored_fields_are_never_looked_at",
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
            "tests/memory/test_records.py::test_a_damaged_record_is_another_record_or_none",
            f"{BAD}test_a_damaged_branch_is_mended_and_the_event_answered",
            f"{GIT}test_a_memory_of_nothing_but_rubbish_opens_and_says_so",
        ),
    ),
    Threat(
        6,
        "Settings, templates or memory that point outside the repository",
        "Read from git's tree, not from disk; links and submodules are refused, names and sizes checked first.",
        (
            f"{GIT}test_a_link_on_the_branch_is_never_followed",
            f"{GIT}test_a_link_in_place_of_settings_or_a_template_is_never_followed",
            f"{GIT}test_a_bad_name_on_the_branch_leads_nowhere",
            f"{GIT}test_huge_settings_and_templates_are_refused_by_their_size",
            "tests/git/test_remote_files.py::test_a_symlink_or_submodule_on_the_way_is_refused",
            "tests/memory/test_store_contract.py::test_a_path_that_leaves_the_store_is_refused",
            f"{LOGS}test_no_file_is_left_through_a_link",
        ),
    ),
    Threat(
        17,
        "A log line that the runner treats as a command",
        "Every message becomes one line without `::` and `##[`, including those of git, GitHub and libraries.",
        (
            f"{LOGS}test_five_thousand_hostile_texts_in_every_line_make_no_command",
            f"{LOGS}test_what_git_and_github_say_makes_no_command",
            f"{LOGS}test_remarks_of_libraries_make_no_command",
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
            f"{PROCESS}test_the_runners_own_files_get_nothing",
            f"{PROCESS}test_the_outputs_of_the_story_are_ours",
        ),
    ),
    Threat(
        19,
        "The token in a log, an argument, an address, a file or an error",
        "Git gets it through GIT_CONFIG_* in its environment, the API in a header; it is redacted in answers.",
        (
            f"{PROCESS}test_the_token_is_in_the_environment_of_git_alone_and_in_nothing_that_is_left",
            f"{TOKEN}test_no_token_where_the_surroundings_are_wrong",
            f"{TOKEN}test_no_token_where_the_api_fails",
            f"{TOKEN}test_no_token_where_git_fails",
            f"{TOKEN}test_no_token_where_the_api_repeats_it",
            f"{TOKEN}test_no_token_where_the_git_server_repeats_it",
            f"{TOKEN}test_no_token_with_bad_settings_and_templates",
            f"{TOKEN}test_no_token_when_everything_is_told_to_speak",
            f"{OWN_GIT}test_secrets_are_cut_out_of_anything_that_git_says",
        ),
    ),
    Threat(
        20,
        "A tag or image that is moved to different code",
        "Actions are pinned to commits; a release names its image by digest, with provenance and SBOM.",
        (
            f"{SUPPLY}test_actions_of_others_are_pinned_to_a_commit",
            f"{SUPPLY}test_actions_of_others_in_the_pages_are_pinned_too",
            f"{SUPPLY}test_a_release_names_the_image_by_its_digest",
            f"{SUPPLY}test_the_image_stands_on_the_official_one_of_python_and_copies_in_only_what_is_named",
        ),
    ),
    Threat(
        21,
        "A cache filled by another run",
        "Neither runs nor releases use a cache; no workflow runs a stranger's commit with rights.",
        (
            f"{SUPPLY}test_nothing_is_kept_in_a_cache_that_another_run_could_fill",
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
            f"{COMMANDS}test_an_outsider_switches_nothing_off",
            f"{COMMANDS}test_what_is_quoted_or_code_is_no_command",
            f"{REPLIES}test_a_private_member_counts_by_permission_not_by_association",
            f"{REPLIES}test_permission_is_what_it_is_when_the_command_is_read",
            f"{REPLIES}test_an_edited_comment_is_not_obeyed",
            f"{REPLIES}test_an_edit_of_an_answered_comment_changes_nothing",
        ),
    ),
    Threat(
        24,
        "An account that poses as the bot, or as somebody with rights",
        "Author and marker together identify the bot; rights are those of the account that GitHub names then.",
        (
            f"{REPLIES}test_who_writes_our_marker_is_not_taken_for_us",
            f"{REPLIES}test_our_own_words_are_never_obeyed",
            f"{REPLIES}test_a_deleted_account_is_not_taken_for_the_author_that_was_deleted_too",
            "tests/github/test_threads.py::test_a_comment_is_ours_by_its_author_and_its_first_line",
            "tests/github/test_discussions.py::test_a_person_with_the_name_of_our_app_is_not_us",
            "tests/github/test_history.py::test_a_person_with_the_name_of_our_app_is_not_us",
            "tests/threats/test_accounts.py::test_a_renamed_account_takes_no_rights_along_and_leaves_none_behind",
        ),
    ),
    Threat(
        26,
        "A forged, repeated or weakly signed webhook",
        "Only SHA-256 over the raw bytes counts, compared in constant time; a known id is not processed again.",
        (
            f"{RECEIVE}test_each_refusal_has_its_status",
            f"{RECEIVE}test_nothing_is_parsed_before_the_signature_is_good",
            f"{RECEIVE}test_one_flipped_bit_anywhere_is_seen",
            f"{RECEIVE}test_one_wrong_digit_of_a_signature_is_seen",
            f"{RECEIVE}test_the_secret_before_is_good_as_well_and_no_third_one",
            f"{RECEIVE}test_a_signature_takes_as_long_to_look_at_whichever_secret_made_it",
            f"{WEB}test_a_delivery_is_answered_once_it_is_stored_and_known_when_it_comes_again",
        ),
    ),
    Threat(
        27,
        "A flood of webhooks",
        "Large bodies are refused unread; connections, bodies, time and queue are bounded; the slowest are dropped.",
        (
            f"{WEB}test_26_mb_are_refused_without_being_read_into_memory",
            f"{WEB}test_two_hundred_slow_senders_do_not_keep_others_waiting_and_are_closed",
            f"{CROWDS}test_a_declared_length_takes_no_room",
            f"{CROWDS}test_bodies_that_came_all_but_a_byte_give_way",
            f"{CROWDS}test_senders_of_a_byte_a_second_hold_nothing_up",
            f"{CROWDS}test_more_connections_than_there_are_places_keep_nobody_out",
            f"{WEB}test_a_body_that_comes_too_slowly_is_given_up",
        ),
    ),
    Threat(
        28,
        "Names, configuration, hooks, submodules, links, filters and bombs for git",
        "Argument lists, checked names, a separate bare repository with its own configuration only, `fsck`, bounds.",
        (
            f"{OWN_GIT}test_a_name_that_is_no_branch_or_looks_like_an_option_is_refused",
            f"{OWN_GIT}test_nothing_of_the_users_own_git_is_heard",
            f"{TOKEN}test_a_hostile_environment_changes_nothing_of_what_git_does",
            f"{GIT}test_submodules_filters_and_modules_of_the_branch_start_nothing",
            f"{GIT}test_a_broken_object_is_refused_as_it_arrives",
            f"{GIT}test_a_mode_that_git_never_writes_is_refused_or_read_as_git_reads_it",
            f"{GIT}test_a_memory_branch_that_unfolds_to_a_billion_files_is_refused",
            f"{GIT}test_a_default_branch_that_unfolds_costs_no_more_than_the_way_to_the_settings",
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
            "tests/threats/test_taken_back.py::test_what_was_edited_or_deleted_is_gone_and_with_the_branch_its_history",
            f"{PRIVATE}test_a_deleted_issue_is_gone_from_the_tip_and_with_the_next_squash_from_history",
            f"{PRIVATE}test_a_transferred_issue_is_gone_too",
            f"{PRIVATE}test_an_issue_of_another_repository_is_neither_fetched_nor_kept_nor_shown",
            "tests/memory/test_memory.py::test_nothing_of_a_deleted_threads_text_stays",
            "tests/github/test_threads.py::test_references_from_other_repositories_are_left_out",
        ),
    ),
    Threat(
        33,
        "Escape from the container through the runner's Docker socket",
        "Only git is started, only two hosts are contacted, and git gets none of the runner's own variables.",
        (
            f"{PROCESS}test_git_is_the_only_program_that_is_started",
            f"{PROCESS}test_git_starts_nothing_but_parts_of_itself",
            f"{PROCESS}test_the_only_hosts_are_the_api_and_the_git_server",
            f"{PROCESS}test_children_hear_nothing_of_the_runners_secrets",
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
            "tests/container/test_image.py::test_there_is_git_and_neither_a_compiler_nor_an_installer",
        ),
    ),
    Threat(
        35,
        "Two repositories that are confused",
        "Each memory is in its repository, and a run's token is for that one; the server uses GitHub's numeric ids.",
        (
            f"{PRIVATE}test_two_repositories_on_one_server_know_nothing_of_each_other",
            f"{TENANTS}test_two_repositories_of_one_name_have_nothing_in_common",
            f"{TENANTS}test_what_was_queued_before_a_rename_goes_to_the_renamed_one_not_to_its_namesake",
            f"{TENANTS}test_a_token_that_names_the_old_name_does_not_reach_the_namesake",
            "tests/github/test_client.py::test_an_issue_of_a_renamed_repository_is_not_gone",
            "tests/github/test_client.py::test_a_transferred_issue_is_gone_and_where_to",
        ),
    ),
    Threat(
        36,
        "JSON bombs: numbers, depth, size, broken characters",
        "Input is bounded before parsing; numbers are below 2^53 or dropped; lone surrogates and NUL are replaced; an "
        "error is one line.",
        (
            f"{PAYLOADS}test_a_payload_of_bombs_is_an_event_or_one_line",
            f"{PAYLOADS}test_a_payload_of_25_megabytes_is_read_and_one_more_byte_is_not",
            f"{PAYLOADS}test_a_record_of_bombs_is_a_record_or_damaged",
            f"{PAYLOADS}test_a_manifest_of_bombs_is_a_manifest_or_damaged",
            f"{PAYLOADS}test_answers_of_bombs_are_answers_or_one_line",
            f"{PAYLOADS}test_an_answer_that_unpacks_to_a_gigabyte_is_given_up",
            f"{PAYLOADS}test_a_run_against_an_api_of_bombs_ends_in_one_line",
            f"{BAD}test_nul_and_lone_surrogates",
        ),
    ),
    Threat(
        37,
        "An issue of another repository is shown to people who may not read it",
        "Only what every reader may read is shown; each answer checks with GitHub; what became private is removed.",
        (
            f"{SCOPE}test_what_all_readers_may_read_is_visible",
            f"{SCOPE}test_a_private_repository_is_visible_if_both_name_each_other",
            f"{SCOPE}test_neither_itself_nor_what_is_gone_nor_another_installation_is_visible",
            "tests/server/test_organisation_worlds.py::test_nothing_leaks_in_many_random_organisations",
            f"{STORY}test_what_became_private_leaves_the_comment",
            f"{STORY}test_what_became_private_is_not_shown_before_anybody_heard_of_it",
            "tests/server/test_organisation_search.py::test_an_answer_that_finds_a_change_tells_other_comments_of_it",
            "tests/server/test_organisation_search.py::test_what_its_repository_forgot_is_not_shown_though_github_has_it",
            f"{STORY}test_a_repository_that_went_to_another_account_is_shown_no_more_though_it_is_public",
            "tests/github/test_foreign_thread.py::test_a_thread_that_is_in_another_repository_by_now_is_not_there",
        ),
    ),
    Threat(
        38,
        "A command or tool is used in a stranger's checkout",
        "No program named in its git settings is run, no link is followed, and no address can hide an option.",
        (
            f"{CHECKOUT}test_no_command_runs_what_the_checkout_names",
            f"{CHECKOUT}test_no_command_runs_it_that_looks_for_the_remote",
            f"{CHECKOUT}test_no_tool_runs_it",
            f"{CHECKOUT}test_a_remote_inside_the_checkout_is_fetched_from_without_running_its_programs",
            f"{CHECKOUT}test_settings_that_are_too_long_to_be_read_hide_no_filter",
            f"{CHECKOUT}test_a_repository_inside_the_checkout_is_none",
            f"{CHECKOUT}test_a_pipe_that_nobody_writes_to_is_not_waited_for",
            f"{LOCAL}test_what_is_no_address_is_refused",
            f"{LOCAL}test_an_address_with_an_option_in_it_is_refused",
            f"{LOCAL}test_an_address_for_a_helper_of_git_is_refused",
            f"{CHECKED_OUT}test_nothing_is_read_through_a_link_of_the_checkout",
            f"{CHECKED_OUT}test_no_template_is_read_through_a_link_of_the_checkout",
            "tests/cli/test_init.py::test_nothing_is_written_through_a_link",
            "tests/cli/test_skill.py::test_no_link_is_followed",
            "tests/sources/test_session.py::test_symlinks_pipes_and_names_that_are_no_text_are_left_out",
            "tests/cli/test_sessions.py::test_committed_transcripts_are_linked_to_nothing",
            "tests/cli/test_doctor.py::test_a_token_goes_to_no_server_that_only_the_checkout_names",
            "tests/cli/test_search.py::test_nothing_that_a_stranger_wrote_is_obeyed_by_the_terminal_of_a_person",
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
            f"{FOLDER}test_a_file_of_any_size_is_refused_by_its_size",
            f"{LANCE}test_damage_is_told_or_harmless_and_a_rebuild_heals_it",
            f"{LANCE}test_a_panic_of_the_engine_is_told_and_a_rebuild_heals_it",
            f"{LANCE}test_a_damaged_row_is_no_thread",
            f"{LANCE}test_terms_and_ids_are_data",
            f"{LANCE}test_tenants_never_share_a_table",
            f"{LANCE}test_only_its_owner_may_read_a_new_folder",
            "tests/cli/test_org.py::test_links_are_not_followed_in_the_folder",
            f"{LOCAL}test_a_damaged_cache_is_made_anew",
            "tests/server/test_database_upgrade.py::test_the_database_of_a_newer_release_is_left_alone",
        ),
    ),
    Threat(
        40,
        "A comment still quotes what its author took back",
        "The next run removes it from every comment that shows it, even one that a person edited.",
        (
            f"{STANDING}test_what_an_author_edits_away_goes_from_the_comment",
            f"{STANDING}test_what_an_author_deletes_goes_from_the_comment",
            f"{STANDING}test_what_is_only_in_the_conversation_goes_too",
            f"{STANDING}test_of_an_issue_that_is_deleted_nothing_is_shown",
            f"{STANDING}test_of_an_issue_that_is_transferred_nothing_is_shown",
            f"{STANDING}test_what_a_person_edited_goes_where_it_quotes_what_was_taken_back",
            f"{STANDING}test_of_an_issue_that_cannot_be_seen_any_more_nothing_is_shown_until_it_can_be",
            "tests/acceptance/test_forget.py::test_a_comment_that_a_person_edited_goes_too",
            f"{LOCAL}test_what_was_forgotten_leaves_this_machine_with_the_next_fetch",
            "tests/server/test_organisation_indexer.py::test_a_quotation_goes_with_the_words_that_its_author_took_back",
            f"{STORY}test_a_deleted_issue_leaves_the_comment_and_is_shown_no_more",
            f"{STORY}test_what_the_sdk_is_asked_to_forget_leaves_the_comment",
        ),
    ),
)

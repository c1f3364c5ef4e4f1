"""The threats to what is read and written: templates, settings, endless text, spoofed markers, Markdown."""

from __future__ import annotations

from tests.threats.threat import Threat

PLACES = "tests/threats/test_places.py::"
TEMPLATES = "tests/threats/test_templates.py::"
SETTINGS = "tests/threats/test_settings_files.py::"
LINEAR = "tests/threats/test_linear_time.py::"
QUERIES = "tests/threats/test_queries.py::"
MARKER = "tests/threats/test_marker.py::"
CONTEXT = "tests/threats/test_context_files.py::"
SPEAKERS = "tests/threats/test_impersonation.py::"
DEFANG = "tests/comment/test_defang.py::"
OWN_TEMPLATES = "tests/comment/test_templates.py::"
RENDER = "tests/comment/test_render.py::"
PACK = "tests/comment/test_prompt.py::"
ACTION = "tests/acceptance/test_action.py::"
BAD = "tests/acceptance/test_bad_input.py::"
POISON = "tests/recall/test_floods.py::"
ELSEWHERE = "tests/pipeline/test_organisation.py::"

ROWS = (
    Threat(
        4,
        "A template of the repository runs code, or never ends",
        "Templates use a short list of features on plain values, within a budget; otherwise the shipped one is used.",
        (
            f"{OWN_TEMPLATES}test_an_unusable_template_is_replaced_by_the_shipped_one_and_one_line_says_so",
            f"{OWN_TEMPLATES}test_the_costliest_template_within_the_budget_takes_far_less_than_two_seconds",
            f"{OWN_TEMPLATES}test_no_template_raises_or_loses_the_marker",
            f"{TEMPLATES}test_no_expression_reaches_beyond_the_values",
            f"{TEMPLATES}test_no_statement_loads_another_file_or_calls_anything",
            f"{TEMPLATES}test_the_shipped_template_is_used_instead_and_one_line_says_so",
            f"{TEMPLATES}test_no_template_takes_two_seconds_or_much_memory",
            f"{BAD}test_a_template_that_loops_or_fails_falls_back_to_the_shipped_one",
        ),
    ),
    Threat(
        5,
        "Words of an issue are treated as a template",
        "Other people's words reach templates only as values, which are never searched for placeholders.",
        (
            f"{PLACES}test_a_template_in_a_strangers_words_is_shown_as_it_was_written",
            f"{OWN_TEMPLATES}test_peoples_words_are_never_read_as_a_template",
            "tests/comment/test_catalogue.py::test_a_value_is_never_read_as_a_placeholder",
        ),
    ),
    Threat(
        7,
        "YAML that runs code, expands endlessly, or is ambiguous",
        "At most 64 KB, checked before parsing; no tags, anchors or duplicate keys; errors name file and line.",
        (
            f"{SETTINGS}test_no_hostile_file_is_accepted_as_settings",
            f"{SETTINGS}test_no_file_takes_more_than_a_second_and_256_megabytes",
            f"{SETTINGS}test_an_error_names_file_line_and_the_nearest_name",
            "tests/settings/test_schema.py::test_an_error_is_one_line_with_its_place_and_remedy",
            "tests/settings/test_schema.py::test_any_text_gives_settings_or_one_printable_line",
        ),
    ),
    Threat(
        8,
        "A text that takes quadratic time to read",
        "Patterns have no nested repetition, scanners never look back, and texts are cut at 65,536 characters.",
        (
            f"{LINEAR}test_four_times_the_text_takes_four_times_as_long",
            f"{LINEAR}test_time_stays_linear_beyond_the_longest_text_that_github_accepts",
            f"{LINEAR}test_the_longest_text_is_read_within_seconds",
            f"{BAD}test_a_body_that_repeats_one_mark_65536_times_is_answered",
        ),
    ),
    Threat(
        9,
        "Search words that are operators, or a query of 100,000 terms",
        "A query is built from terms, never parsed from text; only the 512 highest-weighted terms are looked up.",
        (
            f"{QUERIES}test_operators_find_nothing_that_their_words_do_not",
            f"{QUERIES}test_an_endless_query_of_operators_looks_up_a_bounded_number_of_terms",
            f"{QUERIES}test_a_hundred_thousand_terms_cost_no_more_than_the_limit_of_terms",
            f"{QUERIES}test_a_command_asks_for_a_bounded_number_of_words",
        ),
    ),
    Threat(
        10,
        "Somebody copies the bot's hidden marker",
        "The bot recognises its comment by author and first line together, and trusts nothing in it.",
        (
            f"{MARKER}test_copies_of_our_comment_by_others_are_never_taken_for_ours",
            f"{MARKER}test_earlier_copies_of_our_comment_do_not_keep_us_from_commenting",
            f"{MARKER}test_editing_a_copy_of_our_comment_changes_nothing",
            f"{ACTION}test_a_strangers_marker_is_not_taken_for_ours",
            "tests/pipeline/test_replies.py::test_a_comment_with_our_marker_by_somebody_else_is_not_ours",
        ),
    ),
    Threat(
        11,
        "Mentions in quoted words ping people",
        "Every @ in a quotation is followed by an invisible space, in code too; titles are cut.",
        (
            f"{PLACES}test_some_of_the_corpus_changes_nothing_but_words",
            f"{PLACES}test_the_whole_corpus_changes_nothing_but_words",
            f"{DEFANG}test_no_text_changes_the_shape_of_the_comment",
            f"{RENDER}test_a_comment_pings_nobody_and_refers_to_nothing",
        ),
    ),
    Threat(
        12,
        "The bot's comment leaves backlinks on every issue that it names",
        "Links use GitHub's host without backlinks, numbers are never written as #N, and hits are few.",
        (
            f"{PLACES}test_the_whole_corpus_changes_nothing_but_words",
            f"{RENDER}test_links_between_issues_go_through_the_redirect_host",
            f"{RENDER}test_a_comment_pings_nobody_and_refers_to_nothing",
            "tests/acceptance/test_commands.py::test_an_issue_that_a_command_names_does_not_count_as_a_reference",
            f"{ELSEWHERE}test_a_match_in_another_repository_alone_is_worth_a_comment_without_references",
        ),
    ),
    Threat(
        13,
        "GitHub takes a line of the comment for 'Duplicate of' or a closing keyword",
        "The phrase is broken up in quotations, and a rendered comment with such a line is not used.",
        (
            f"{PLACES}test_no_quoted_line_acts_as_duplicate_of_or_as_a_closing_keyword",
            f"{RENDER}test_no_line_makes_github_act",
            f"{OWN_TEMPLATES}test_an_unusable_template_is_replaced_by_the_shipped_one_and_one_line_says_so",
            "tests/comment/test_catalogue.py::test_no_payload_gets_through_as_a_word",
        ),
    ),
    Threat(
        14,
        "Markdown or HTML that escapes: images, links, tables, unclosed elements",
        "Markup is escaped, code has longer fences than any inside it, and only the bot's own addresses are linked.",
        (
            f"{PLACES}test_the_whole_corpus_changes_nothing_but_words",
            f"{PLACES}test_the_longest_run_of_anything_changes_nothing_but_words",
            f"{PLACES}test_no_mixture_of_the_corpus_changes_more_than_words",
            f"{PLACES}test_a_long_comment_that_had_to_be_cut_is_still_harmless",
            f"{PLACES}test_a_comment_that_is_cut_inside_any_text_is_still_harmless",
            f"{DEFANG}test_no_transcript_leaves_its_place",
            f"{RENDER}test_a_hostile_thread_cannot_leave_its_quotation",
        ),
    ),
    Threat(
        15,
        "Characters that hide or reverse text",
        "They are removed from everything shown, and normalised for searching.",
        (
            f"{PLACES}test_no_invisible_character_of_a_stranger_is_published",
            f"{CONTEXT}test_no_invisible_character_of_the_corpus_is_left",
            f"{PACK}test_text_that_a_person_cannot_see_is_removed",
            "tests/reading/test_analyzer.py::test_compatibility_forms_and_invisible_characters_make_no_difference",
        ),
    ),
    Threat(
        16,
        "Instructions for the agents that read the bot's files",
        "A notice says that it is data; quoted text cannot close its element or fence; hidden text is removed.",
        (
            f"{CONTEXT}test_instructions_appear_only_in_quotations_and_after_the_notice_that_they_are_data",
            f"{CONTEXT}test_agents_do_not_read_text_that_people_cannot_see",
            f"{CONTEXT}test_no_text_can_end_its_own_quotation",
            f"{SPEAKERS}test_no_line_of_a_stranger_looks_like_a_message_of_a_maintainer",
            f"{SPEAKERS}test_no_interface_shows_a_line_of_a_stranger_as_a_message_of_a_maintainer",
            f"{CONTEXT}test_no_text_of_the_corpus_adds_an_element_or_heading",
            f"{PACK}test_both_forms_stay_well_formed_whatever_people_write",
        ),
    ),
    Threat(
        25,
        "Two bots that answer each other forever",
        "Bots, itself included, are never answered; an issue has one comment, which changes only when its facts do.",
        (
            f"{MARKER}test_a_bot_that_repeats_our_comments_gets_one_comment_at_most",
            f"{MARKER}test_an_event_for_our_own_comment_gets_no_answer",
            "tests/pipeline/test_replies.py::test_commands_in_our_own_comments_are_never_obeyed",
        ),
    ),
    Threat(
        31,
        "Hundreds of stuffed issues crowd out the answers",
        "A closed issue counts only if a known contributor or a second person took part.",
        (
            f"{POISON}test_no_flood_of_closed_or_open_issues_displaces_the_answer",
            f"{POISON}test_a_flood_does_not_displace_the_other_candidates",
            f"{POISON}test_duplicates_that_only_a_stranger_claims_do_not_count",
            f"{POISON}test_one_unanswered_open_issue_of_each_account_is_shown",
        ),
    ),
    Threat(
        32,
        "Settings or templates from somebody else's branch",
        "Both are read from the default branch only.",
        (f"{MARKER}test_settings_and_templates_of_another_branch_have_no_effect",),
    ),
)

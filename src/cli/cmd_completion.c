/*
 * firn completion: shell scripts generated from the tables of commands, options and words, so that
 * they match this firn. The words are part of the script: completion does not run firn.
 */
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/say.h"
#include "cli/words.h"

#include <stdio.h>
#include <string.h>

static const struct opt opts[] = { { .name = NULL } };

const struct usage completion_usage = {
    .name = "completion",
    .examples =
        "  source <(firn completion bash)                        bash, for this shell\n"
        "  firn completion zsh >~/.zfunc/_firn                   zsh, from a folder of $fpath\n"
        "  firn completion fish >~/.config/fish/completions/firn.fish\n",
    .synopsis = "firn completion bash|zsh|fish",
    .about = "Prints a script that completes commands, options, kinds, layouts and encodings.\n",
    .operands = "bash zsh fish",
    .opts = opts,
};

/* Words in the form of shell lists: separated by blanks. */
static void put_word(const char *word, void *user)
{
    bool *more = user;
    printf("%s%s", *more ? " " : "", word);
    *more = true;
}

static void put_words(const char *list)
{
    bool more = false;
    words_each(list, put_word, &more);
}

/* Text inside single quotes: quotes end them, `special` characters get a backslash. */
static void put_quoted(const char *text, const char *special)
{
    for (; *text; text++) {
        if (*text == '\'')
            fputs("'\\''", stdout);
        else if (strchr(special, *text))
            printf("\\%c", *text);
        else
            putchar(*text);
    }
}

/* ---- bash ---- */

static void bash_value(const struct opt *o)
{
    if (o->type == OPT_FLAG)
        return;
    printf("        --%s", o->name);
    if (o->letter)
        printf("|-%c", o->letter);
    fputs(") ", stdout);
    if (words_has_files(o->words)) {
        fputs("COMPREPLY=($(compgen -f -- \"$cur\")); return ;;\n", stdout);
        return;
    }
    if (!o->words) {
        fputs("return ;;\n", stdout);
        return;
    }
    fputs("words=\"", stdout);
    put_words(o->words);
    fputs("\" ;;\n", stdout);
}

static void bash_command(const struct command *c)
{
    const struct usage *u = c->usage;
    printf("    %s)\n        case $prev in\n", c->name);
    for (const struct opt *o = u->opts; o->name; o++)
        bash_value(o);
    fputs("        *)\n            if [[ $cur == -* ]]; then\n                words=\"--help",
          stdout);
    for (const struct opt *o = u->opts; o->name; o++)
        printf(" --%s", o->name);
    fputs("\"\n            else\n                words=\"", stdout);
    put_words(u->operands);
    fputs("\"\n", stdout);
    if (words_has_files(u->operands))
        fputs("                COMPREPLY=($(compgen -f -- \"$cur\"))\n", stdout);
    fputs("            fi ;;\n        esac ;;\n", stdout);
}

static void bash(void)
{
    fputs("# bash completion for firn; load it with: source <(firn completion bash)\n"
          "_firn()\n{\n"
          "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} words=\n"
          "    COMPREPLY=()\n"
          "    if ((COMP_CWORD == 1)); then\n"
          "        COMPREPLY=($(compgen -W \"",
          stdout);
    put_words("@commands --help --version");
    fputs("\" -- \"$cur\"))\n        return\n    fi\n"
          "    case ${COMP_WORDS[1]} in\n",
          stdout);
    for (const struct command *c = commands; c->name; c++)
        bash_command(c);
    fputs("    esac\n"
          "    COMPREPLY+=($(compgen -W \"$words\" -- \"$cur\"))\n"
          "}\n"
          "complete -F _firn firn\n",
          stdout);
}

/* ---- zsh ---- */

static void zsh_action(const char *list)
{
    if (words_has_files(list)) {
        fputs("_files", stdout);
        return;
    }
    putchar('(');
    put_words(list);
    putchar(')');
}

static void zsh_option(const struct opt *o)
{
    fputs(" \\\n            ", stdout);
    if (o->letter)
        printf("'(-%c --%s)'{-%c,--%s}'[", o->letter, o->name, o->letter, o->name);
    else
        printf("'--%s[", o->name);
    put_quoted(o->about, "[]:");
    putchar(']');
    if (o->value) {
        printf(":%s:", o->value);
        zsh_action(o->words);
    }
    putchar('\'');
}

static void zsh(void)
{
    static const struct opt help = { .name = "help", .letter = 'h', .about = "show help" };
    fputs("#compdef firn\n"
          "# zsh completion for firn; put it into a folder of $fpath as _firn\n"
          "_firn() {\n"
          "    local -a commands\n"
          "    commands=(\n",
          stdout);
    for (const struct command *c = commands; c->name; c++) {
        printf("        '%s:", c->name);
        put_quoted(c->summary, ":");
        fputs("'\n", stdout);
    }
    fputs("    )\n"
          "    if (( CURRENT == 2 )); then\n"
          "        _describe command commands\n"
          "        return\n"
          "    fi\n"
          "    local command=$words[2]\n"
          "    shift words\n"
          "    (( CURRENT-- ))\n"
          "    case $command in\n",
          stdout);
    for (const struct command *c = commands; c->name; c++) {
        printf("    %s)\n        _arguments -s", c->name);
        zsh_option(&help);
        for (const struct opt *o = c->usage->opts; o->name; o++)
            zsh_option(o);
        if (c->usage->operands) {
            fputs(" \\\n            '*:operand:", stdout);
            zsh_action(c->usage->operands);
            putchar('\'');
        }
        fputs(" ;;\n", stdout);
    }
    fputs("    esac\n"
          "}\n"
          "if [[ $zsh_eval_context[-1] == loadautofunc ]]; then\n"
          "    _firn \"$@\"\n"
          "else\n"
          "    compdef _firn firn\n"
          "fi\n",
          stdout);
}

/* ---- fish ---- */

static void fish_option(const char *command, const struct opt *o)
{
    printf("complete -c firn -n '__fish_seen_subcommand_from %s' -l %s", command, o->name);
    if (o->letter)
        printf(" -s %c", o->letter);
    if (o->value && words_has_files(o->words)) {
        fputs(" -r -F", stdout);
    } else if (o->value) {
        fputs(" -x", stdout);
        if (o->words) {
            fputs(" -a '", stdout);
            put_words(o->words);
            putchar('\'');
        }
    }
    fputs(" -d '", stdout);
    /* fish knows \' inside single quotes, not the '\'' of other shells. */
    for (const char *p = o->about; *p; p++)
        printf(*p == '\'' || *p == '\\' ? "\\%c" : "%c", *p);
    fputs("'\n", stdout);
}

static void fish(void)
{
    static const struct opt help = { .name = "help", .letter = 'h', .about = "show help" };
    fputs("# fish completion for firn; put it into ~/.config/fish/completions as firn.fish\n"
          "complete -c firn -f\n",
          stdout);
    for (const struct command *c = commands; c->name; c++)
        printf("complete -c firn -n __fish_use_subcommand -a %s -d '%s'\n", c->name, c->summary);
    for (const struct command *c = commands; c->name; c++) {
        const char *operands = c->usage->operands;
        fish_option(c->name, &help);
        for (const struct opt *o = c->usage->opts; o->name; o++)
            fish_option(c->name, o);
        if (!operands)
            continue;
        printf("complete -c firn -n '__fish_seen_subcommand_from %s'", c->name);
        if (words_has_files(operands)) {
            fputs(" -F\n", stdout);
            continue;
        }
        fputs(" -a '", stdout);
        put_words(operands);
        fputs("'\n", stdout);
    }
}

int cmd_completion(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*print)(void);
    } shells[] = { { "bash", bash }, { "zsh", zsh }, { "fish", fish } };
    char unused, shown[SAY_TEXT_BUF];
    int operands, r = options_parse(&completion_usage, argc, argv, &unused, &operands);
    if (r >= 0)
        return r;
    if (operands != 1)
        return say_trouble("missing shell: write firn completion bash, zsh or fish");
    for (size_t i = 0; i < sizeof shells / sizeof shells[0]; i++)
        if (strcmp(argv[1], shells[i].name) == 0) {
            shells[i].print();
            return output_finish(STATUS_OK);
        }
    return say_trouble("no completion for '%s': choose bash, zsh or fish",
                       say_text(argv[1], strlen(argv[1]), shown));
}

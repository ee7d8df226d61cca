/* Prose or program? Words of a language stand side by side, operands of Python never do; and
 * without a sign of a program nothing is taken for one. */
#include <string.h>

#include "frontend-adapter/python.h"

enum word {
	WORD_NONE,
	WORD_BLOCK,	/* begins a statement that ends with a colon */
	WORD_STATEMENT, /* begins another */
	WORD_IMPORT,
	WORD_INNER, /* may stand amid an expression */
	WORD_VALUE,
};

static const struct {
	const char *text;
	enum word word;
} words[] = {{"def", WORD_BLOCK}, {"class", WORD_BLOCK}, {"while", WORD_BLOCK}, {"try", WORD_BLOCK},
	{"elif", WORD_BLOCK}, {"except", WORD_BLOCK}, {"finally", WORD_BLOCK}, {"with", WORD_BLOCK},
	{"return", WORD_STATEMENT}, {"raise", WORD_STATEMENT}, {"del", WORD_STATEMENT},
	{"pass", WORD_STATEMENT}, {"break", WORD_STATEMENT}, {"continue", WORD_STATEMENT},
	{"global", WORD_STATEMENT}, {"nonlocal", WORD_STATEMENT}, {"assert", WORD_STATEMENT},
	{"import", WORD_IMPORT}, {"from", WORD_IMPORT}, {"if", WORD_INNER}, {"else", WORD_INNER},
	{"for", WORD_INNER}, {"in", WORD_INNER}, {"is", WORD_INNER}, {"and", WORD_INNER},
	{"or", WORD_INNER}, {"not", WORD_INNER}, {"lambda", WORD_INNER}, {"yield", WORD_INNER},
	{"await", WORD_INNER}, {"async", WORD_INNER}, {"as", WORD_INNER}, {"True", WORD_VALUE},
	{"False", WORD_VALUE}, {"None", WORD_VALUE}};

struct look {
	struct py_lexer lx;
	struct py_token first; /* of the line */
	struct py_token prev;  /* kind PY_LINE at the beginning of a line */
	enum word prev_word, first_word;
	bool prose, strong;
	bool soft;	/* the line begins with match, case or type */
	bool call_open; /* the bracket that is open at depth 0 is that of a call */
	bool called;	/* prev closed such a call */
};

static enum word word_of(const struct py_token *t)
{
	if (t->kind != PY_NAME)
		return WORD_NONE;
	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (py_is(t, words[i].text))
			return words[i].word;
	return WORD_NONE;
}

static bool is_value(const struct py_token *t, enum word word)
{
	return t->kind == PY_NUMBER || t->kind == PY_STRING ||
	       (t->kind == PY_NAME && (word == WORD_NONE || word == WORD_VALUE));
}

static bool is_one_of(const struct py_token *t, const char *signs)
{
	return t->kind == PY_OP && t->text.len == 1 && strchr(signs, *t->text.data);
}

static bool ends_value(const struct look *k)
{
	return is_value(&k->prev, k->prev_word) || is_one_of(&k->prev, ")]}") ||
	       (k->first_word != WORD_IMPORT && k->prev.kind == PY_OP && py_is(&k->prev, "..."));
}

static void see_first(struct look *k, const struct py_token *t, enum word word)
{
	k->first = *t;
	k->first_word = word;
	k->soft = py_is(t, "match") || py_is(t, "case") || py_is(t, "type");
	if (is_one_of(t, "@"))
		k->strong = true;
	else if (t->kind == PY_OP && !is_one_of(t, "([{-+~*") && !py_is(t, "..."))
		k->prose = true;
	if (word == WORD_INNER && (py_is(t, "is") || py_is(t, "and") || py_is(t, "or") ||
					  py_is(t, "in") || py_is(t, "as")))
		k->prose = true;
}

/* A list of Markdown, not a sign before a number. */
static bool is_bullet(const struct look *k, const struct py_token *t)
{
	return k->prev.first && is_one_of(&k->prev, "-+*") && t->spaced;
}

static void see_word(struct look *k, const struct py_token *t, enum word word)
{
	bool after = ends_value(k);
	switch (word) {
	case WORD_BLOCK:
		if (!t->first && !py_is(&k->prev, "async") && !is_one_of(&k->prev, ":"))
			k->prose = true;
		break;
	case WORD_STATEMENT:
		if (!t->first && !is_one_of(&k->prev, ":"))
			k->prose = true;
		break;
	case WORD_IMPORT:
		if (after && !(k->first_word == WORD_IMPORT || k->first_word == WORD_STATEMENT ||
				     k->first_word == WORD_INNER))
			k->prose = true;
		break;
	case WORD_INNER:
		if (k->first_word == WORD_IMPORT && !py_is(t, "as"))
			k->prose = true;
		if (after && k->lx.depth == 0 &&
			(py_is(t, "for") || py_is(t, "lambda") || py_is(t, "await")))
			k->prose = true;
		break;
	default:
		break;
	}
}

static void see_value(struct look *k, const struct py_token *t)
{
	bool strings = k->prev.kind == PY_STRING && t->kind == PY_STRING;
	bool soft = k->soft && k->prev.first;
	if (ends_value(k) && !strings && !soft)
		k->prose = true;
	if (k->prev_word == WORD_IMPORT && t->kind == PY_NAME && k->first_word == WORD_IMPORT)
		k->strong |= py_is(&k->prev, "import");
	if (t->kind == PY_STRING && t->open && k->lx.at < k->lx.end)
		k->prose = true;
}

static bool is_assignment(const struct py_token *t)
{
	static const char *const signs[] = {"=", "+=", "-=", "*=", "/=", "%=", "//=", "**=", ":="};
	for (size_t i = 0; i < ARRAY_LEN(signs); i++)
		if (py_is(t, signs[i]))
			return true;
	return false;
}

static bool is_arithmetic(const struct py_token *t)
{
	return is_one_of(t, "+-*/%<>") || py_is(t, "**") || py_is(t, "//") || py_is(t, "==");
}

/* Stands between two values only. */
static bool is_binary(const struct py_token *t)
{
	static const char *const signs[] = {"//", "<=", ">=", "==", "!=", "<<", ">>"};
	for (size_t i = 0; i < ARRAY_LEN(signs); i++)
		if (py_is(t, signs[i]))
			return true;
	return is_one_of(t, "%|&^<>");
}

static void see_op(struct look *k, const struct py_token *t)
{
	bool named = k->prev.kind == PY_NAME && k->prev_word == WORD_NONE && !t->spaced;
	if (is_one_of(t, "(") && k->lx.depth == 1)
		k->call_open =
			k->prev.first && k->prev.kind == PY_NAME && k->prev_word == WORD_NONE;
	if (is_one_of(t, "([") && named)
		k->strong = true;
	if (is_assignment(t) && k->lx.depth == 0) {
		k->strong |= ends_value(k) || is_one_of(&k->prev, ",");
		k->prose |= (!ends_value(k) && !is_one_of(&k->prev, ",")) ||
			    (k->called && k->first_word == WORD_NONE);
	}
	if ((is_binary(t) && !ends_value(k)) ||
		(py_is(t, "->") && k->first_word != WORD_BLOCK && !py_is(&k->first, "async")))
		k->prose = true;
	if (is_arithmetic(t) && k->prev.kind == PY_NUMBER)
		k->strong = true;
	if (is_one_of(t, ")]}") && k->lx.depth == 0 && k->prev.kind == PY_LINE)
		k->prose = true;
}

static bool ends_block(const struct look *k)
{
	return k->first_word == WORD_BLOCK || k->first_word == WORD_INNER || k->soft;
}

static void see_line(struct look *k)
{
	if (k->prev.kind == PY_OP && is_one_of(&k->prev, ":")) {
		k->prose |= !ends_block(k);
		k->strong |= ends_block(k) && !k->soft;
	} else if (k->prev.kind == PY_OP && !is_one_of(&k->prev, ")]},*;") &&
		   !py_is(&k->prev, "...")) {
		k->prose = true;
	} else if (k->first_word == WORD_BLOCK && k->prev.kind == PY_NAME && k->prev.first &&
		   !py_is(&k->prev, "try") && !py_is(&k->prev, "finally")) {
		k->prose = true;
	}
}

/* Lines of a terminal alone are none of Python: they may be meant for the reader's. */
static bool is_shell(const struct py_token *t)
{
	static const char pip[] = "%pip ";
	return *t->text.data == '!' ||
	       (t->text.len >= sizeof pip && memcmp(t->text.data, pip, sizeof pip - 1) == 0);
}

static void see(struct look *k, const struct py_token *t)
{
	enum word word = word_of(t);
	if (t->first && t->kind != PY_LINE)
		see_first(k, t, word);
	else if (is_bullet(k, t) && t->kind != PY_LINE)
		k->prose = true;
	if (t->kind == PY_STRAY || t->kind == PY_OTHER)
		k->prose = true;
	else if (t->kind == PY_MAGIC)
		k->strong |= !is_shell(t);
	else if (t->kind == PY_LINE)
		see_line(k);
	else if (is_value(t, word))
		see_value(k, t);
	else if (t->kind == PY_NAME)
		see_word(k, t, word);
	else
		see_op(k, t);
	k->called = is_one_of(t, ")") && k->lx.depth == 0 && k->call_open;
	k->prev = *t;
	k->prev_word = word;
}

static enum py_look verdict(const struct look *k, bool string_open)
{
	bool header = k->prev.kind == PY_OP && is_one_of(&k->prev, ":") && ends_block(k);
	if (k->prose || !k->strong)
		return PY_PROSE;
	return k->lx.depth > 0 || string_open || header ? PY_CUT : PY_CODE;
}

enum py_look py_look(struct bytes code)
{
	struct look k = {.prev = {.kind = PY_LINE}};
	struct py_token t, last = {.kind = PY_END};
	bool open = false, header = false;
	if (py_is_cell_magic(code))
		return PY_CODE;
	py_begin(&k.lx, code);
	while (!k.prose && py_next(&k.lx, &t)) {
		open = t.kind == PY_STRING && t.open;
		if (t.kind == PY_COMMENT || (t.kind == PY_LINE && t.first))
			continue;
		header = t.kind == PY_LINE && is_one_of(&last, ":");
		see(&k, &t);
		last = t;
	}
	if (k.prev.kind == PY_OP && k.lx.depth == 0 && !is_one_of(&k.prev, ":"))
		see_line(&k);
	if (header && !k.prose && k.strong)
		return PY_CUT;
	return verdict(&k, open);
}

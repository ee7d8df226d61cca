/* All text is drawn with a handful of faces that are chosen and opened before the wall is up: after
 * it no font file can be opened. Few, since cairo closes faces beyond ten and opens them again. */
#include <fontconfig/fontconfig.h>
#include <pango/pangocairo.h>
#include <string.h>

#include "frontend-adapter/render/render.h"

#define HAN  0x4e2d
#define FACE 0x1f600

struct wish {
	const char *family, *lang;
	int weight;
	FcChar32 must_have;
};

static const struct wish wishes[] = {
	{"monospace", "en", FC_WEIGHT_REGULAR, 'a'},
	{"monospace", "en", FC_WEIGHT_BOLD, 'a'},
	{"sans-serif", "en", FC_WEIGHT_REGULAR, 'a'},
	{"sans-serif", "en", FC_WEIGHT_BOLD, 'a'},
	{"sans-serif", "zh-cn", FC_WEIGHT_REGULAR, HAN},
	{"sans-serif", "zh-cn", FC_WEIGHT_BOLD, HAN},
	{"emoji", "und-zsye", FC_WEIGHT_REGULAR, FACE},
};

struct chosen {
	FcPattern *face[ARRAY_LEN(wishes)];
	unsigned n;
	char mono[200], sans[200], han[200];
};

static bool is_same(FcPattern *a, FcPattern *b)
{
	FcChar8 *file_a, *file_b;
	int index_a, index_b;
	return FcPatternGetString(a, FC_FILE, 0, &file_a) == FcResultMatch &&
	       FcPatternGetString(b, FC_FILE, 0, &file_b) == FcResultMatch &&
	       FcPatternGetInteger(a, FC_INDEX, 0, &index_a) == FcResultMatch &&
	       FcPatternGetInteger(b, FC_INDEX, 0, &index_b) == FcResultMatch &&
	       index_a == index_b && strcmp((char *)file_a, (char *)file_b) == 0;
}

/* The system's own row of a face: a match has the request mixed into it. */
static FcPattern *own_row(FcConfig *config, FcPattern *match)
{
	FcFontSet *all = FcConfigGetFonts(config, FcSetSystem);
	for (int i = 0; all && i < all->nfont; i++)
		if (is_same(all->fonts[i], match))
			return all->fonts[i];
	return NULL;
}

static FcPattern *match(FcConfig *config, const struct wish *w)
{
	FcResult result;
	FcCharSet *chars;
	FcPattern *p = FcPatternBuild(NULL, FC_FAMILY, FcTypeString, w->family, FC_LANG,
		FcTypeString, w->lang, FC_WEIGHT, FcTypeInteger, w->weight, NULL);
	(void)FcConfigSubstitute(config, p, FcMatchPattern); /* without memory: a worse match */
	FcDefaultSubstitute(p);
	FcPattern *found = FcFontMatch(config, p, &result), *own = NULL;
	if (found && FcPatternGetCharSet(found, FC_CHARSET, 0, &chars) == FcResultMatch &&
		FcCharSetHasChar(chars, w->must_have))
		own = own_row(config, found);
	if (found)
		FcPatternDestroy(found);
	FcPatternDestroy(p);
	return own;
}

static void name_of(FcPattern *face, char *ret, size_t size)
{
	FcChar8 *family;
	if (*ret == '\0' && FcPatternGetString(face, FC_FAMILY, 0, &family) == FcResultMatch)
		(void)copy_text(ret, size, (char *)family, strlen((char *)family)); /* may be cut */
}

static void choose(FcConfig *config, struct chosen *c)
{
	for (size_t i = 0; i < ARRAY_LEN(wishes); i++) {
		FcPattern *face = match(config, &wishes[i]);
		bool known = false;
		if (!face)
			continue;
		for (unsigned k = 0; k < c->n; k++)
			known = known || is_same(c->face[k], face);
		if (!known)
			c->face[c->n++] = face;
		if (i < 2)
			name_of(face, c->mono, sizeof c->mono);
		else if (i < 4)
			name_of(face, c->sans, sizeof c->sans);
		else if (i < 6)
			name_of(face, c->han, sizeof c->han);
	}
}

static void put_alias(struct buf *xml, const char *name, const char *first, const char *second)
{
	(void)buf_addf(xml, "<alias binding=\"same\"><family>%s</family><prefer><family>", name);
	escape_text(xml, first, strlen(first)); /* all latched */
	(void)buf_add_text(xml, "</family><family>");
	escape_text(xml, second, strlen(second));
	(void)buf_add_text(xml, "</family></prefer></alias>");
}

/* A configuration that knows these faces and nothing else. */
static int use(const struct chosen *c, struct err *err)
{
	AUTO(buf_done) struct buf xml;
	FcConfig *config = FcConfigCreate();
	buf_init(&xml, 16384);
	(void)buf_add_text(&xml, "<?xml version=\"1.0\"?><fontconfig>"); /* latched */
	put_alias(&xml, "monospace", c->mono, c->han);
	put_alias(&xml, "sans-serif", c->sans, c->han);
	put_alias(&xml, "serif", c->sans, c->han);
	(void)buf_add_text(&xml, "</fontconfig>");
	if (!config || xml.failed || !FcConfigParseAndLoadFromMemory(config, xml.data, FcFalse) ||
		!FcConfigBuildFonts(config))
		return err_set(err, E_NOMEM, "fontconfig cannot be set up");
	FcFontSet *set = FcConfigGetFonts(config, FcSetSystem);
	for (unsigned i = 0; i < c->n; i++)
		(void)FcFontSetAdd(set, FcPatternDuplicate(c->face[i])); /* a face less */
	return FcConfigSetCurrent(config) ? 0 : err_set(err, E_NOMEM, "fontconfig failed");
}

/* Libraries complain of what they cannot open; nobody reads it. */
static GLogWriterOutput on_complaint(
	GLogLevelFlags level, const GLogField *fields, gsize n, gpointer data)
{
	(void)level, (void)fields, (void)n, (void)data;
	return G_LOG_WRITER_HANDLED;
}

/* Draws once with each: files are opened, tables read. The layouts stay until the process ends: a
 * face that nothing uses is closed, and could not be opened again. */
static void draw_once(void)
{
	static const char text[] = "aB1\xe4\xb8\xad\xf0\x9f\x98\x80\xe2\x88\x91\xd7\x90";
	static const char *const styles[] = {"monospace 10", "monospace bold 10",
		"monospace italic 10", "monospace bold italic 10", "sans-serif 10",
		"sans-serif bold 10", "sans-serif italic 10"};
	cairo_surface_t *s = cairo_image_surface_create(CAIRO_FORMAT_ARGB32, 200, 30);
	cairo_t *cr = cairo_create(s);
	for (size_t i = 0; i < ARRAY_LEN(styles); i++) {
		PangoLayout *layout = pango_cairo_create_layout(cr);
		PangoFontDescription *d = pango_font_description_from_string(styles[i]);
		pango_layout_set_font_description(layout, d);
		pango_layout_set_text(layout, text, -1);
		pango_cairo_show_layout(cr, layout);
		pango_font_description_free(d);
	}
	cairo_destroy(cr);
	cairo_surface_destroy(s);
}

int fonts_load(struct err *err)
{
	struct chosen c = {0};
	g_log_set_writer_func(on_complaint, NULL, NULL);
	FcConfig *system = FcInitLoadConfigAndFonts();
	if (!system)
		return err_set(err, E_IO, "fontconfig cannot be read");
	choose(system, &c);
	int status = c.n > 0 ? use(&c, err) : err_set(err, E_IO, "there is no font");
	FcConfigDestroy(system);
	if (status == 0)
		draw_once();
	return status;
}

/* HTML and SVG of a stranger made safe: what is allowed is written anew from gumbo's tree, in our
 * own words and quotes; what is not on a list is not there. The result has no script, no event
 * handler, no form, loads nothing from anywhere and paints nothing outside the element it is put
 * in, if that contains what it paints (html.c's box). SVG becomes a picture (a data: URL), so a
 * page never parses it as its own. ids and classes get the prefix "u-" (but `dataframe` stays), so
 * that they meet nothing of the page's. Bounded depth; memory is freed at the end of each call. */
#ifndef COPPICE_RENDER_SANITISE_H
#define COPPICE_RENDER_SANITISE_H

#include "gateway/base/base.h"
#include "gateway/base/buf.h"

struct sanitised {
	bool visible; /* there is text or a picture */
	bool cut;     /* something was too deep, or a picture was left out */
};

/* scope: a class name of the element that the result is put in, of nothing else on the page: its
 * sheets reach no further. Each adds to out; E_TOO_BIG (out's ceiling, or the input is too much to
 * look at), E_NOMEM; E_INVALID where there is no <svg>. */
int sanitise_html(struct bytes html, const char *scope, struct buf *out, struct sanitised *ret);
int sanitise_svg(struct bytes svg, struct buf *out);

/* style.c: declarations that are on the list, `a:b;c:d`. svg: those of SVG too, url(#id) allowed.
 */
void style_declarations(struct bytes css, bool svg, struct buf *out);
/* A sheet: rules for allowed selectors, each below the class `scope`; NULL: of an SVG. */
void style_sheet(struct bytes css, const char *scope, struct buf *out);
/* id or class in our name space: "u-" before it, odd characters as "_". */
void style_name(struct bytes name, bool id, struct buf *out);

/* url.c */
bool url_is_link(struct bytes url);
/* A picture as a data: URL of PNG, JPEG, GIF or (html only) SVG, which is sanitised. false: none.
 */
bool url_picture(struct bytes url, bool svg_too, struct buf *out);

/* names.c: the lists. The canonical name, NULL if it is not on the list. */
enum element_rule { ELEMENT_UNWRAP, ELEMENT_KEEP, ELEMENT_DROP };
enum element_rule names_html_element(const char *name);
bool names_html_attribute(const char *name);
const char *names_svg_element(struct bytes name);
const char *names_svg_attribute(const char *name);
bool names_svg_dropped(struct bytes name);
bool names_css_property(struct bytes name, bool svg);
bool names_css_function(struct bytes name);
bool names_css_pseudo(struct bytes name);

#endif

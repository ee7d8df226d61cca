/* The lists of what is allowed. */
#include "frontend-adapter/render/sanitise.h"

#include <string.h>
#include <strings.h>

/* HTML that is kept; what is in neither list is unwrapped: its children stay. */
static const char *const html_kept[] = {"a", "abbr", "article", "aside", "b", "bdi", "bdo", "big",
	"blockquote", "br", "caption", "center", "cite", "code", "col", "colgroup", "dd", "del",
	"details", "dfn", "div", "dl", "dt", "em", "figcaption", "figure", "footer", "h1", "h2",
	"h3", "h4", "h5", "h6", "header", "hr", "i", "img", "ins", "kbd", "li", "main", "mark",
	"nav", "ol", "p", "pre", "q", "rp", "rt", "ruby", "s", "samp", "section", "small", "span",
	"strike", "strong", "sub", "summary", "sup", "table", "tbody", "td", "tfoot", "th", "thead",
	"time", "tr", "tt", "u", "ul", "var", "wbr"};

/* Gone with all that is in them. */
static const char *const html_dropped[] = {"applet", "audio", "base", "canvas", "datalist", "embed",
	"frame", "frameset", "head", "iframe", "input", "link", "meta", "noembed", "noframes",
	"noscript", "object", "optgroup", "option", "param", "plaintext", "script", "select",
	"source", "style", "template", "textarea", "title", "track", "video", "xmp"};

static const char *const html_attributes[] = {"align", "alt", "aria-label", "bgcolor", "border",
	"cellpadding", "cellspacing", "class", "colspan", "datetime", "dir", "headers", "height",
	"href", "id", "lang", "open", "reversed", "rowspan", "scope", "span", "src", "start",
	"style", "title", "type", "valign", "value", "width"};

static const char *const svg_kept[] = {"circle", "clipPath", "defs", "ellipse", "feBlend",
	"feColorMatrix", "feComponentTransfer", "feComposite", "feDropShadow", "feFlood", "feFuncA",
	"feFuncB", "feFuncG", "feFuncR", "feGaussianBlur", "feMerge", "feMergeNode", "feOffset",
	"filter", "g", "image", "line", "linearGradient", "marker", "mask", "path", "pattern",
	"polygon", "polyline", "radialGradient", "rect", "stop", "style", "svg", "switch", "symbol",
	"text", "textPath", "tspan", "use"};

static const char *const svg_dropped[] = {"animate", "animateColor", "animateMotion",
	"animateTransform", "desc", "discard", "foreignObject", "handler", "iframe", "listener",
	"metadata", "script", "set", "title"};

static const char *const svg_attributes[] = {"alignment-baseline", "baseline-shift", "class",
	"clip-path", "clip-rule", "clipPathUnits", "color", "cx", "cy", "d", "direction", "display",
	"dominant-baseline", "dx", "dy", "fill", "fill-opacity", "fill-rule", "filter",
	"filterUnits", "flood-color", "flood-opacity", "font-family", "font-size", "font-style",
	"font-variant", "font-weight", "fx", "fy", "gradientTransform", "gradientUnits", "height",
	"href", "id", "in", "in2", "intercept", "k1", "k2", "k3", "k4", "lengthAdjust",
	"letter-spacing", "marker-end", "marker-mid", "marker-start", "markerHeight", "markerUnits",
	"markerWidth", "mask", "maskContentUnits", "maskUnits", "mode", "offset", "opacity",
	"operator", "orient", "overflow", "patternContentUnits", "patternTransform", "patternUnits",
	"points", "preserveAspectRatio", "primitiveUnits", "r", "refX", "refY", "result", "rotate",
	"rx", "ry", "shape-rendering", "slope", "spreadMethod", "startOffset", "stdDeviation",
	"stop-color", "stop-opacity", "stroke", "stroke-dasharray", "stroke-dashoffset",
	"stroke-linecap", "stroke-linejoin", "stroke-miterlimit", "stroke-opacity", "stroke-width",
	"style", "tableValues", "text-anchor", "text-decoration", "textLength", "transform", "type",
	"values", "vector-effect", "viewBox", "visibility", "width", "word-spacing", "writing-mode",
	"x", "x1", "x2", "y", "y1", "y2"};

/* Nothing that places a box over another one (position, z-index, transform, inset). */
static const char *const css_properties[] = {"align-items", "background", "background-color",
	"background-image", "background-size", "border", "border-bottom", "border-bottom-color",
	"border-bottom-style", "border-bottom-width", "border-collapse", "border-color",
	"border-left", "border-left-color", "border-left-style", "border-left-width",
	"border-radius", "border-right", "border-right-color", "border-right-style",
	"border-right-width", "border-spacing", "border-style", "border-top", "border-top-color",
	"border-top-style", "border-top-width", "border-width", "caption-side", "color",
	"column-gap", "display", "empty-cells", "flex", "flex-direction", "flex-wrap", "font",
	"font-family", "font-size", "font-style", "font-variant", "font-weight", "gap", "height",
	"justify-content", "letter-spacing", "line-height", "list-style-type", "margin",
	"margin-bottom", "margin-left", "margin-right", "margin-top", "max-height", "max-width",
	"min-height", "min-width", "opacity", "overflow-wrap", "padding", "padding-bottom",
	"padding-left", "padding-right", "padding-top", "row-gap", "table-layout", "text-align",
	"text-decoration", "text-indent", "text-overflow", "text-shadow", "text-transform",
	"vertical-align", "visibility", "white-space", "width", "word-break", "word-spacing",
	"word-wrap"};

static const char *const css_svg_properties[] = {"alignment-baseline", "baseline-shift",
	"clip-path", "clip-rule", "dominant-baseline", "fill", "fill-opacity", "fill-rule",
	"filter", "flood-color", "flood-opacity", "isolation", "marker-end", "marker-mid",
	"marker-start", "mask", "mix-blend-mode", "paint-order", "shape-rendering", "stop-color",
	"stop-opacity", "stroke", "stroke-dasharray", "stroke-dashoffset", "stroke-linecap",
	"stroke-linejoin", "stroke-miterlimit", "stroke-opacity", "stroke-width", "text-anchor",
	"text-rendering", "vector-effect", "writing-mode"};

static const char *const css_functions[] = {
	"hsl", "hsla", "linear-gradient", "rgb", "rgba", "translate"};

static const char *const css_pseudos[] = {"after", "before", "empty", "even", "first-child",
	"first-of-type", "focus", "hover", "last-child", "last-of-type", "not", "nth-child",
	"nth-last-child", "nth-of-type", "odd", "only-child", "only-of-type"};

struct names {
	const char *const *list;
	size_t n;
};

/* The lists are short: a walk is what a sheet or a tree costs least. */
static const char *find(struct names in, const char *name, size_t len)
{
	for (size_t i = 0; i < in.n; i++)
		if (strlen(in.list[i]) == len && strncasecmp(in.list[i], name, len) == 0)
			return in.list[i];
	return NULL;
}

static const char *find_bytes(struct names in, struct bytes name)
{
	return find(in, (const char *)name.data, name.len);
}

enum element_rule names_html_element(const char *name)
{
	if (find((struct names){html_kept, ARRAY_LEN(html_kept)}, name, strlen(name)))
		return ELEMENT_KEEP;
	return find((struct names){html_dropped, ARRAY_LEN(html_dropped)}, name, strlen(name))
		       ? ELEMENT_DROP
		       : ELEMENT_UNWRAP;
}

bool names_html_attribute(const char *name)
{
	return find(
		(struct names){html_attributes, ARRAY_LEN(html_attributes)}, name, strlen(name));
}

const char *names_svg_element(struct bytes name)
{
	return find_bytes((struct names){svg_kept, ARRAY_LEN(svg_kept)}, name);
}

bool names_svg_dropped(struct bytes name)
{
	return find_bytes((struct names){svg_dropped, ARRAY_LEN(svg_dropped)}, name);
}

const char *names_svg_attribute(const char *name)
{
	return find((struct names){svg_attributes, ARRAY_LEN(svg_attributes)}, name, strlen(name));
}

bool names_css_property(struct bytes name, bool svg)
{
	return find_bytes((struct names){css_properties, ARRAY_LEN(css_properties)}, name) ||
	       (svg && find_bytes((struct names){css_svg_properties, ARRAY_LEN(css_svg_properties)},
			       name));
}

bool names_css_function(struct bytes name)
{
	return find_bytes((struct names){css_functions, ARRAY_LEN(css_functions)}, name);
}

bool names_css_pseudo(struct bytes name)
{
	return find_bytes((struct names){css_pseudos, ARRAY_LEN(css_pseudos)}, name);
}

/* Writing an <svg> of gumbo's tree as XML of allowed elements and attributes. */
#ifndef COPPICE_RENDER_SVG_H
#define COPPICE_RENDER_SVG_H

#include "frontend-adapter/render/tree.h"

struct buf;

bool svg_is_root(const GumboNode *node);
int svg_write(const GumboNode *root, struct buf *out); /* E_TOO_BIG */

#endif

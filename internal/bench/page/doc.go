// Package page makes one HTML file of reports, with plots, that needs no network and no
// script, follows the viewer's light or dark scheme, and can be read on a phone.
//
// Plots are inline SVG, drawn for a card of about the width of a phone and given their
// colours by the page's style, so that they turn dark with it. Every figure of a plot is
// also in a table below it.
package page

/* Whether a text is well-formed as XML, as far as a page of ours can be wrong: elements closed in order, attributes in quotes and
 * none twice, no bare & or <, only the five named entities and numbers, nothing after the end. No DTD is read. */
#ifndef JG_TESTS_XML_CHECK_H
#define JG_TESTS_XML_CHECK_H

/* Null if it is; else what is wrong, with where, in a static buffer. */
const char *xml_check(const char *text);

#endif

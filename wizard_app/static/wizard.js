"use strict";
// What a browser knows and the device does not: nothing here is needed to set it up.
(() => {
  const { searchParams } = new URL(location);
  if (searchParams.has("token")) {
    searchParams.delete("token");
    const rest = String(searchParams);
    history.replaceState(null, "", location.pathname + (rest && `?${rest}`));
  }
})();

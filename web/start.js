"use strict";

Data.load(byId("data").textContent).then(
  (report) => {
    window.malloscope = report.raw.comparison ? new ComparisonApp(report) : new App(report);
    document.documentElement.dataset.ready = "true";
  },
).catch((error) => {
  byId("failure").hidden = false;
  byId("failure").textContent = `The page cannot be shown: ${error.message}`;
  throw error;
});

// What the pictures use of Apache ECharts. The page keeps one copy, under a name of our own with the version in it: a
// later output finds it there, and a page's own echarts, or a module loader, is not disturbed.
import * as core from "echarts/core";
import { CustomChart, HeatmapChart } from "echarts/charts";
import {
  DataZoomComponent,
  GridComponent,
  TitleComponent,
  TooltipComponent,
  VisualMapComponent,
} from "echarts/components";
import { CanvasRenderer } from "echarts/renderers";

core.use([
  CustomChart, HeatmapChart, DataZoomComponent, GridComponent, TitleComponent, TooltipComponent, VisualMapComponent,
  CanvasRenderer,
]);

window["attnb-echarts-5.6.0"] = core;

export { WIRES } from '../../rig/wires.ts'

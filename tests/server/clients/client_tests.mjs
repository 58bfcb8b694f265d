// What the tests of clients share.
import { createRequire } from 'node:module';

// A package. npm puts them into the build folder, which is the working folder, not next to this file.
export const fromPackages = createRequire(process.cwd() + '/');

// Runs an object of named functions, one after the other; ends the program, with 1 if one failed.
export async function runTests(tests, atEnd = async () => {}) {
  let failed = 0;
  for (const [name, test] of Object.entries(tests)) {
    try {
      await test();
      console.log('ok: ' + name);
    } catch (error) {
      ++failed;
      console.log(`FAILED: ${name}: ${error.stack}`);
    }
  }
  await atEnd();
  process.exit(failed ? 1 : 0);
}
